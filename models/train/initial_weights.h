#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// Sets numbers [first, first + count) of a parameter to their first values: a function of the
/// seed, the parameter's name and the place of each number, so that neither a plan nor a number of
/// threads nor a cut into pieces changes them. `first` is a multiple of four. Uses all threads of
/// the stream, and for a device all cores.
void draw_initial(Stream& stream, const Parameter& parameter, std::uint64_t seed,
                  std::int64_t first, std::int64_t count, Tensor& value);

}  // namespace troupe::models
