#include "kernels/combine.h"

#include <algorithm>

namespace troupe::kernels {

void combine(Stream& stream, float a, const float* x, float b, const float* z, float* y,
             std::int64_t count) {
  constexpr std::int64_t grain = 65'536;
  stream.for_each((count + grain - 1) / grain, [=](std::int64_t block) {
    const auto end = std::min(count, (block + 1) * grain);
    for (auto i = block * grain; i < end; ++i) y[i] = a * x[i] + b * z[i];
  });
}

}  // namespace troupe::kernels
