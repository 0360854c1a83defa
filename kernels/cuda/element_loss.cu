#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"
#include "kernels/element_loss.h"

namespace troupe::kernels::cuda {
namespace {

/// The loss of a number, and its derivative.
struct LossOf {
  float value, slope;
};

/// As in kernels/cpu/element_loss.cpp.
template <ElementLoss loss>
__device__ LossOf loss_of(float z, float t) {
  if constexpr (loss == ElementLoss::binary) {
    const float e = exp_of(-fabsf(z)), w = 1.0f + e;
    const float log1p = w == 1.0f ? e : log_of(w) * e / (w - 1.0f);
    const float share = z >= 0.0f ? 1.0f : e;
    return {at_least(z, 0.0f) - z * t + log1p, share / w - t};
  } else {
    const float apart = z - t;
    return {apart * apart, apart + apart};
  }
}

template <ElementLoss loss, class Number>
struct ElementLosses {
  const Number* z;
  const float* targets;
  float* losses;
  Number* dz;  // May be z, or null.
  float scale;
  template <int n>
  __device__ void at(std::int64_t i) const {
    const auto outputs = read_pack<n>(z, i);
    const auto wanted = read_pack<n>(targets, i);
    Pack<float, n> found, slopes;
    for (int k = 0; k < n; ++k) {
      const auto one = loss_of<loss>(wide(outputs[k]), wanted[k]);
      const bool counts = wanted[k] == wanted[k];
      found[k] = counts ? one.value : 0.0f;
      slopes[k] = counts ? one.slope * scale : 0.0f;
    }
    write_pack(losses, i, found);
    if (dz) write_pack(dz, i, narrow_computed<Number>(slopes));
  }
};

}  // namespace

template <class Number>
void element_loss(Stream& stream, ElementLoss loss, const Number* z, const float* targets,
                  float* losses, Number* dz, std::int64_t count, float scale) {
  constexpr int n = in_access<Number>;
  const bool is_aligned = are_aligned(z, dz) && are_aligned(targets, losses);
  switch (loss) {
    case ElementLoss::binary:
      return for_packs<n>(
          stream, count, is_aligned,
          ElementLosses<ElementLoss::binary, Number>{z, targets, losses, dz, scale});
    case ElementLoss::squared:
      return for_packs<n>(
          stream, count, is_aligned,
          ElementLosses<ElementLoss::squared, Number>{z, targets, losses, dz, scale});
  }
}

template void element_loss(Stream&, ElementLoss, const float*, const float*, float*, float*,
                           std::int64_t, float);
template void element_loss(Stream&, ElementLoss, const Float16*, const float*, float*, Float16*,
                           std::int64_t, float);
template void element_loss(Stream&, ElementLoss, const BFloat16*, const float*, float*, BFloat16*,
                           std::int64_t, float);

}  // namespace troupe::kernels::cuda
