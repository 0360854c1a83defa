#pragma once

#include <optional>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// Which of several passes of the same kind goes first.
enum class First { deepest_stage, oldest_micro_batch };

struct ListSettings {
  int window = 1;  // The most micro-batches between their first F and the end of their last I.
  First first = First::deepest_stage;
  double patience = 0;  // Wait for a pass that is closer than this part of a W instead of that W.
  std::vector<double> caps = {};  // On the activations of each device; empty: no bound.
};

/// Fills the lanes of a pipeline from its costs alone. Whenever a device is free it takes what can
/// start, an I before an F before the oldest W; an F only where its activations fit. The passes of
/// a stage keep the order of the micro-batches. `pipeline` says stages, micro-batches, routes and
/// the number of lanes. With caps too tight it can come to a dead end, and then gives none.
std::optional<Schedule> list_schedule(const Schedule& pipeline, const Costs& costs,
                                      const ListSettings& settings);

}  // namespace troupe::schedules
