#pragma once

#include <cassert>

#include "core/memory/shape.h"
#include "kernels/batch_norm.h"

namespace troupe::models {

/// Converts [batch, channels, height, width] to the shape that per-channel kernels take.
inline kernels::ImageShape image_shape(const Shape& shape) {
  assert(shape.rank() == 4);
  return {.batch = shape[0], .channels = shape[1], .pixels = shape[2] * shape[3]};
}

}  // namespace troupe::models
