// Launches for many experts, shared by the kernels in fp32 and those on tensor cores.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/device_kernels.h"
#include "kernels/experts.h"

namespace troupe::kernels::cuda {

/// The experts of a launch: their addresses are arguments of the kernel.
constexpr std::int64_t most_experts = 64;

template <class Number>
struct Matrices {
  const Number* of[most_experts];
};
/// It has no padding: the bytes of equal launches are equal, so that graphs repeat them.
struct Gradients {
  float* of[most_experts];
  std::uint64_t begin;  // A bit for each expert.
};
static_assert(most_experts <= 64);
static_assert(std::has_unique_object_representations_v<Gradients>);

/// The rows of a block: those of `expert` from `first` on, before `end`.
struct RowsOfBlock {
  int expert;
  std::int64_t first, end;
};
/// Returns the rows of this block, which is at blockIdx.y among the pieces of `height` rows that
/// each expert's rows are cut in. There are blocks for as many pieces as there may be: the bounds
/// lie here, and the host does not read them. A block without rows gets the expert `experts`.
__device__ inline RowsOfBlock rows_of_block(const std::int32_t* bounds, int experts,
                                            std::int64_t height) {
  std::int64_t piece = blockIdx.y;
  for (int expert = 0; expert < experts; ++expert) {
    const std::int64_t begin = bounds[expert], end = bounds[expert + 1];
    const std::int64_t pieces = (end - begin + height - 1) / height;
    if (piece < pieces) return {expert, begin + piece * height, end};
    piece -= pieces;
  }
  return {experts, 0, 0};
}

/// Calls body(product, matrices, experts, pieces of rows) for each launch of products whose blocks
/// are `height` rows high.
template <class Number, class Body>
void each_launch(const DeviceExperts<Number>& product, std::span<const Number* const> matrices,
                 std::int64_t height, Body body) {
  const auto all = static_cast<std::int64_t>(matrices.size());
  for (std::int64_t first = 0; first < all; first += most_experts) {
    const std::int64_t experts = std::min(most_experts, all - first);
    Matrices<Number> some = {};
    std::copy_n(matrices.begin() + first, experts, some.of);
    auto part = product;
    part.bounds += first;
    body(part, some, static_cast<int>(experts),
         static_cast<unsigned>((product.rows + height - 1) / height + experts));
  }
}

/// Calls body(product, gradients, experts) for each launch.
template <class Number, class Body>
void each_launch(const DeviceExpertGradients<Number>& product,
                 std::span<const ExpertGradient> gradients, Body body) {
  const auto all = static_cast<std::int64_t>(gradients.size());
  for (std::int64_t first = 0; first < all; first += most_experts) {
    const std::int64_t experts = std::min(most_experts, all - first);
    Gradients some = {};
    for (std::int64_t i = 0; i < experts; ++i) {
      const auto& gradient = gradients[static_cast<std::size_t>(first + i)];
      some.of[i] = gradient.dw;
      some.begin |= std::uint64_t{gradient.begins} << i;
    }
    auto part = product;
    part.bounds += first;
    body(part, some, static_cast<unsigned>(experts));
  }
}

}  // namespace troupe::kernels::cuda
