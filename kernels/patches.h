#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// Images are [batch, channels, height, width]; patches are [batch, patch, channel, row, column]
/// and numbered row by row. `size` divides height and width.
struct PatchShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t size = 1;

  constexpr std::int64_t patches() const { return (height / size) * (width / size); }
};

void cut_patches(Stream& stream, const PatchShape& shape, const float* images, float* patches);
/// Reverses cut_patches().
void join_patches(Stream& stream, const PatchShape& shape, const float* patches, float* images);

}  // namespace troupe::kernels
