#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/report/chart.h"
#include "apps/report/run_events.h"
#include "core/value.h"
#include "schedules/simulate/timeline.h"

namespace troupe::apps {

/// The data of a run that a report uses.
struct RunReport {
  RunEvents events;
  Value recipe;  // The part of the configuration that decides the numbers; null if unknown.
  std::optional<schedules::Timeline> timeline;
};

/// Returns a chart of the loss of all runs over their steps.
LineChart loss_chart(const std::vector<RunReport>& runs, const std::string& title);

/// Returns a self-contained HTML page: no script, font or external address.
std::string report_page(const std::vector<RunReport>& runs, const std::string& title);

}  // namespace troupe::apps
