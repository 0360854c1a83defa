#pragma once

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/attention.h"

namespace troupe::kernels::cuda {

struct Attention;

/// Returns the biases of each distance, [heads, diagonals], or nothing if the shape has none.
Tensor spread_biases(Stream& stream, const AttentionShape& shape, const float* biases);

/// Overwrites the gradients of biases, [buckets, heads].
void attend_back_to_biases(Stream& stream, const Attention& all, float* dbiases);

}  // namespace troupe::kernels::cuda
