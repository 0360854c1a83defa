#include "kernels/cuda/kernels.h"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

struct Round {
  const float* x;
  Float16* y;
  __device__ void operator()(std::int64_t i) const { y[i] = Float16::from(x[i]); }
};

struct Widen {
  const Float16* x;
  float* y;
  __device__ void operator()(std::int64_t i) const { y[i] = x[i].to_float(); }
};

}  // namespace

void round_to_f16(Stream& stream, const float* x, Float16* y, std::int64_t count) {
  for_elements(stream, count, Round{x, y});
}
void widen_f16(Stream& stream, const Float16* x, float* y, std::int64_t count) {
  for_elements(stream, count, Widen{x, y});
}

}  // namespace troupe::kernels::cuda
