#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/reference.h"
#include "tests/sim/scenario.h"

namespace troupe::simulation {

/// The result of playing a scenario.
struct Played {
  std::vector<std::string> violations;
  std::vector<std::string> history;
  std::uint64_t hash = 0;  // The digest of all that happened.
  std::uint64_t events = 0;
  Scheduler::Duration time{0};  // Simulated.
  std::int64_t recoveries = 0;
  std::int64_t states = 0;                         // Tensors of states that were compared.
  std::map<std::string, std::uint64_t> points;     // How often each named point was passed.
  std::map<std::string, std::size_t> queues;       // The most tasks that waited in one, by name.
  int heads = 0;                                   // Lives of the head.
  std::array<int, Fault::kinds> faults_reached{};  // While the run was not over.
};

/// Plays the scenario, then its second phase: no more faults come, enough machines are healthy, and
/// the run must end with the weights of `expected`.
Played play(const Scenario& scenario, const TrainedSteps& expected,
            Scheduler::History history = Scheduler::History::none);

/// Returns the scenario with as few of its faults as break a rule.
Scenario shrink(Scenario scenario, const TrainedSteps& expected);

}  // namespace troupe::simulation
