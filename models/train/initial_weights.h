#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// Draws the initial values of numbers [first, first + count) of a parameter. They depend only on
/// the seed, the parameter's name and each number's index, so no plan, thread count or cut into
/// pieces changes them. `first` must be a multiple of four. Uses all threads of the stream, and for
/// a device all cores.
void draw_initial(Stream& stream, const Parameter& parameter, std::uint64_t seed,
                  std::int64_t first, std::int64_t count, Tensor& value);

}  // namespace troupe::models
