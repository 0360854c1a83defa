#include <cmath>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"
#include "kernels/dropout.h"

namespace troupe::kernels::cuda {
namespace {

/// Dropout of four elements of a sample, as many as one counter serves.
struct Drop {
  Changing<RandomKey> key;
  std::int32_t kept_from;
  float scale;
  const float* x;
  float* y;
  std::int64_t blocks, per_sample;
  bool is_aligned;  // Whether all four elements exist, and are aligned.

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t sample = i / blocks, block = i % blocks;
    RandomKey sample_key = key.read();
    sample_key.sample += static_cast<std::uint32_t>(sample);
    const auto words = sample_key.words(static_cast<std::uint32_t>(block));
    const std::int64_t first = block * 4;
    if (is_aligned) {
      auto all = read_pack<4>(x, sample * per_sample + first);
      for (int k = 0; k < 4; ++k) all[k] = outcome(words[static_cast<std::size_t>(k)], all[k]);
      return write_pack(y, sample * per_sample + first, all);
    }
    for (std::int64_t j = 0; j < 4 && first + j < per_sample; ++j) {
      const std::int64_t at = sample * per_sample + first + j;
      y[at] = outcome(words[static_cast<std::size_t>(j)], x[at]);
    }
  }
  __device__ float outcome(std::uint32_t word, float number) const {
    return static_cast<std::int32_t>(word >> 8) >= kept_from ? number * scale : 0.0f;
  }
};

}  // namespace

void dropout(Stream& stream, const RandomKey& key, float rate, const float* x, float* y,
             std::int64_t samples, std::int64_t per_sample) {
  const auto kept_from = static_cast<std::int32_t>(std::ceil(rate * 0x1p24f));
  const std::int64_t blocks = (per_sample + 3) / 4;
  for_elements(stream, samples * blocks,
               Drop{queue_of(stream).changing(key), kept_from, 1 / (1 - rate), x, y, blocks,
                    per_sample, per_sample % 4 == 0 && are_aligned(x, y)});
}

}  // namespace troupe::kernels::cuda
