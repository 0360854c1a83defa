#pragma once

#include <string>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate.h"

namespace troupe::schedules {

/// A file of tests/schedules/data: its lines as words, without comments.
std::vector<std::vector<std::string>> read_table(const std::string& name);

/// How many stages of a named schedule a device holds: "interleaved-v4" has 4, "zb-v" has 2.
int chunks_of(const std::string& name);

/// The named schedule on so many devices. It must fit them.
Schedule make(const std::string& name, int devices, int micro_batches);

/// A schedule from its canonical text. It must be one.
Schedule read(const std::string& text);

/// Plays it; it must come to its end.
Simulation play(const Schedule& schedule, const Costs& costs);

/// F = I = W = 1 for a whole device, however many stages it has.
Costs unit_costs(const Schedule& schedule, double hop = 0);

}  // namespace troupe::schedules
