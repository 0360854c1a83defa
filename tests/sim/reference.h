#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/value.h"

namespace troupe::simulation {

/// A step of a run to which nothing happens.
struct TrainedStep {
  std::string weights;  // Their digest after it.
  double loss = 0;
  std::optional<double> evaluated;  // The loss on the data for evaluations.
};
using TrainedSteps = std::map<std::int64_t, TrainedStep>;

/// Trains a run on this machine, in one real process with threads, and saves each step.
TrainedSteps really_trained(const Value& config);

}  // namespace troupe::simulation
