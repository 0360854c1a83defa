#pragma once

#include <string>
#include <vector>

#include "apps/report/chart.h"
#include "apps/report/run_events.h"
#include "core/value.h"

namespace troupe::apps {

/// The data of a run that a report uses.
struct RunReport {
  RunEvents events;
  Value history;       // HistoryFile::json()
  Value about;         // about_run()
  std::string config;  // Its configuration; empty if unknown.
};

/// Returns a chart of the loss of all runs over their steps.
LineChart loss_chart(const std::vector<RunReport>& runs, const std::string& title);

/// Returns the page of apps/page with the data of runs in it: one file without a server. It uses
/// no other file or address, and tells the browser to forbid both.
std::string report_page(const std::vector<RunReport>& runs, const std::string& title);

}  // namespace troupe::apps
