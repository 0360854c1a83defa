#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/report/chart.h"
#include "apps/report/run_events.h"
#include "core/value.h"
#include "schedules/simulate/timeline.h"

namespace troupe::apps {

/// All that is known of a run.
struct RunReport {
  RunEvents events;
  Value recipe;  // What decides its numbers; null: not known.
  std::optional<schedules::Timeline> timeline;
};

/// The loss of all runs over their steps.
LineChart loss_chart(const std::vector<RunReport>& runs, const std::string& title);

/// One page of HTML that asks for nothing else: no script, no font, no address.
std::string report_page(const std::vector<RunReport>& runs, const std::string& title);

}  // namespace troupe::apps
