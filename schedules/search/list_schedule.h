#pragma once

#include <optional>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// The pass that goes first among several passes of one kind.
enum class First { deepest_stage, oldest_micro_batch };

struct ListSettings {
  int window = 1;  // The most micro-batches between their first F and the end of their last I.
  First first = First::deepest_stage;
  double patience = 0;  // A pass due within this fraction of a W is awaited before the W runs.
  std::vector<double> caps = {};  // Activation limit of each device; empty: no limit.
};

/// Fills the lanes of a pipeline from its costs. A free device starts a ready I before an F before
/// the oldest W, and an F only if its activations fit. A stage keeps the order of the
/// micro-batches. `pipeline` defines stages, micro-batches, routes and the number of lanes. Returns
/// nothing if tight caps lead to a dead end.
std::optional<Schedule> list_schedule(const Schedule& pipeline, const Costs& costs,
                                      const ListSettings& settings);

}  // namespace troupe::schedules
