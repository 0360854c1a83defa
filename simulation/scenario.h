#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "actors/decide/reconciler.h"
#include "simulation/world.h"

namespace troupe::simulation {

/// A run on a small cluster. The seed selects faults; after a while they stop. Then the run must
/// end with the bits of a failure-free run.
struct Scenario {
  std::uint64_t seed = 0;
  Bug bug = Bug::none;
};

/// The outcome of a scenario.
struct Story {
  std::string violation;  // The violated invariant and when; empty: none.
  std::map<actors::reconciler::Row, int> rows;
  std::uint64_t trace = 0;  // A hash of the history; equal seeds give equal values.
  std::uint64_t events = 0;
  std::int64_t epochs = 0;
  std::int64_t steps_again = 0;  // Steps that were repeated.
};

Story play(const Scenario& scenario);

}  // namespace troupe::simulation
