#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "actors/decide/reconciler.h"
#include "simulation/world.h"

namespace troupe::simulation {

/// A run on a small cluster, in which everything goes wrong that its seed draws, and then nothing
/// any more: by then it must come to its end, with the bits of a run to which nothing happened.
struct Scenario {
  std::uint64_t seed = 0;
  Bug bug = Bug::none;
};

struct Story {
  std::string violation;  // What should never have been, and when; empty: nothing.
  std::map<actors::reconciler::Row, int> rows;
  std::uint64_t trace = 0;  // Equal seeds give equal ones.
  std::uint64_t events = 0;
  std::int64_t epochs = 0;
  std::int64_t steps_again = 0;  // Steps that were done more than once.
};

Story play(const Scenario& scenario);

}  // namespace troupe::simulation
