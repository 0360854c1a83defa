#pragma once

#include <cstdint>

#include "apps/machine/this_machine.h"
#include "config/run_config.h"
#include "core/result.h"
#include "core/value.h"
#include "schedules/simulate/cluster.h"
#include "schedules/simulate/cost_model.h"
#include "simulation/replay.h"

namespace troupe::apps {

/// Where a run is simulated: the nodes, and what a device of speed 1 does.
struct SimPlace {
  schedules::Cluster cluster;
  schedules::DeviceProfile profile = nominal_device();
};

/// For how long, and what happens meanwhile: nodes come and go as spot instances were seen to, or
/// one every so often, or as a trace tells.
struct SimTerms {
  double hours = 1;
  double notice = 0;      // Seconds that a node knows beforehand.
  double fail_every = 0;  // Seconds.
  std::uint64_t seed = 1;
  bool spot = false;
  simulation::FailureTrace trace;
};

/// What happens to so many nodes meanwhile.
simulation::FailureTrace failures(const SimTerms& terms, int nodes);

struct Simulated {
  simulation::ReplayReport report;
  int copies = 1;  // Of the state in the memory of nodes.
  int plans_made = 0;
};

/// The real control plane on a virtual clock. An error where the run cannot be planned there; a
/// report with a flaw is worth nothing.
Result<Simulated> simulate(const config::RunConfig& config, SimPlace place, const SimTerms& terms);

/// As `--output json` prints it.
Value to_value(const Simulated& simulated);

}  // namespace troupe::apps
