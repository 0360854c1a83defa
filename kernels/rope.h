#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "kernels/attention.h"

namespace troupe::kernels {

enum class Rotation : std::uint8_t { forward, back };

/// Applies rotary position embedding by halves, in place: rotates the pair (x[i], x[i + width/2])
/// at position p by the angle p * theta^(-2i/width). `back` rotates the other way. Angles are
/// doubles, so that they are accurate at far positions.
void rope(Stream& stream, Rotation rotation, HeadsOut x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, double theta);

/// Returns the difference of the logarithms of two neighbouring frequencies.
double rope_step(double theta, std::int64_t width);

}  // namespace troupe::kernels
