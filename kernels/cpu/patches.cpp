#include "kernels/patches.h"

#include <algorithm>

#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

/// Calls row(image, patch) with the offsets of each row of each patch; runs samples in parallel.
template <class Row>
void for_each_row(Stream& stream, const PatchShape& shape, Row row) {
  const auto across = shape.width / shape.size;
  const auto sample = shape.channels * shape.height * shape.width;
  stream.for_each(shape.batch, [=](std::int64_t b) {
    std::int64_t patch = b * sample;
    for (std::int64_t p = 0; p < shape.patches(); ++p) {
      const auto corner = (p / across) * shape.size * shape.width + (p % across) * shape.size;
      for (std::int64_t c = 0; c < shape.channels; ++c)
        for (std::int64_t y = 0; y < shape.size; ++y, patch += shape.size)
          row(b * sample + (c * shape.height + y) * shape.width + corner, patch);
    }
  });
}

}  // namespace

void cut_patches(Stream& stream, const PatchShape& shape, const float* images, float* patches) {
  if (const auto* there = kernels_of(stream))
    return there->cut_patches(stream, shape, images, patches);
  for_each_row(stream, shape, [=](std::int64_t image, std::int64_t patch) {
    std::copy_n(images + image, shape.size, patches + patch);
  });
}

void join_patches(Stream& stream, const PatchShape& shape, const float* patches, float* images) {
  if (const auto* there = kernels_of(stream))
    return there->join_patches(stream, shape, patches, images);
  for_each_row(stream, shape, [=](std::int64_t image, std::int64_t patch) {
    std::copy_n(patches + patch, shape.size, images + image);
  });
}

}  // namespace troupe::kernels
