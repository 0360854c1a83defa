#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// A loss of each number z of an output and its target t, as PyTorch's functions give it.
enum class ElementLoss : std::uint8_t {
  binary,   // BCEWithLogitsLoss: max(z, 0) - z t + log(1 + exp(-|z|)); dz = sigmoid(z) - t.
  squared,  // MSELoss: (z - t)^2; dz = 2 (z - t).
};

/// Computes losses[i] and, in the same pass, dz[i] times scale. A target that is NaN does not
/// count: its loss is 0, and so is its gradient. `dz` may be `z`, or null if only losses are
/// wanted.
void element_loss(Stream& stream, ElementLoss loss, const float* z, const float* targets,
                  float* losses, float* dz, std::int64_t count, float scale);

}  // namespace troupe::kernels
