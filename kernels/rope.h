#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "kernels/attention.h"

namespace troupe::kernels {

enum class Rotation : std::uint8_t { forward, back };

/// Rotary position embedding by halves, in place: the pair (x[i], x[i + width/2]) of the position
/// at `p` turns by p * theta^(-2i/width). Backward turns the other way. Angles in double, so that
/// far positions are right.
void rope(Stream& stream, Rotation rotation, HeadsOut x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, double theta);

/// The difference of the logarithms of two neighbouring frequencies.
double rope_step(double theta, std::int64_t width);

}  // namespace troupe::kernels
