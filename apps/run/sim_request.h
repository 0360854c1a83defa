#pragma once

#include <cstdint>

#include "apps/machine/this_machine.h"
#include "config/run_config.h"
#include "core/result.h"
#include "core/value.h"
#include "schedules/simulate/cluster.h"
#include "schedules/simulate/cost_model.h"
#include "simulation/forecast.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// The place of a simulated run: its nodes, and the profile of a device of speed 1.
struct SimPlace {
  schedules::Cluster cluster;
  schedules::DeviceProfile profile = nominal_device();
};

/// The duration of a simulation and the failures in it: nodes come and go like observed spot
/// instances, fail at a fixed interval, or follow a trace.
struct SimTerms {
  double hours = 1;
  double notice = 0;      // Seconds between the notice and the end of a node.
  double fail_every = 0;  // Seconds between failures.
  std::uint64_t seed = 1;
  bool spot = false;
  simulation::FailureTrace trace;
};

/// Returns the failures of `nodes` nodes during the simulation.
simulation::FailureTrace failures(const SimTerms& terms, int nodes);

struct Simulated {
  simulation::ForecastReport report;
  int copies = 1;  // Copies of the state in the memory of nodes.
  int plans_made = 0;
};

/// Forecasts the run with the machine of a head. Fails if the run cannot be planned at this place.
Result<Simulated> simulate(storage::Files& files, const config::RunConfig& config, SimPlace place,
                           const SimTerms& terms);

/// Returns the result as `--output json` prints it.
Value to_value(const Simulated& simulated);

}  // namespace troupe::apps
