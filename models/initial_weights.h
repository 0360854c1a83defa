#pragma once

#include <cstdint>

#include "core/stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// A parameter's first numbers: a function of the seed, its name and the place of each, so that no
/// plan changes them.
Tensor initial_value(Stream& stream, const Parameter& parameter, std::uint64_t seed);

}  // namespace troupe::models
