#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/value.h"

namespace troupe::simulation {

/// The digest of the weights after each step.
using WeightsByStep = std::map<std::int64_t, std::string>;

/// Trains a run on this machine, in one real process with threads, and saves each step.
WeightsByStep really_trained(const Value& config);

}  // namespace troupe::simulation
