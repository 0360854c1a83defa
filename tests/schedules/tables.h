#pragma once

#include <string>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulate.h"

namespace troupe::schedules {

/// Reads a file of tests/schedules/data: the words of each line, without comments.
std::vector<std::vector<std::string>> read_table(const std::string& name);

/// Returns the stages per device of a named schedule: 4 for "interleaved-v4", 2 for "zb-v".
int chunks_of(const std::string& name);

/// Returns a named schedule; the shape must be valid.
Schedule make(const std::string& name, int devices, int micro_batches);

/// Parses a canonical text, which must be valid.
Schedule read(const std::string& text);

/// Simulates a schedule, which must not deadlock.
Simulation play(const Schedule& schedule, const Costs& costs);

/// Returns costs of F = I = W = 1 for a whole device, split among its stages.
Costs unit_costs(const Schedule& schedule, double hop = 0);

}  // namespace troupe::schedules
