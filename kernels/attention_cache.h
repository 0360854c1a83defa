#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/attention.h"

namespace troupe::kernels {

/// Attention of a text's next positions, with the keys and values of its earlier positions in a
/// cache. Only the cores have these functions.
///
/// In each `shape` below the batch is 1, the mask is causal, and `length` is the number of
/// positions that the cache is for. With a window, a position takes the place of one that no later
/// position sees. A cache is laid out as products with a single row read it.

/// Allocates a cache. Its numbers are not initialized.
Tensor make_attention_cache(Stream& stream, const AttentionShape& shape);

/// Writes the keys and values of positions first, first + 1, ... to the cache: the rows of k and v.
void keep_in_cache(Stream& stream, const AttentionShape& shape, std::int64_t first, HeadsOf k,
                   HeadsOf v, Tensor& cache);

/// Does what keep_in_cache() does, and computes the attention of each of these positions. It has
/// the bits that attention_forward() gives to the last position of a sequence. The cache must have
/// all positions before `first` that a window lets them see.
void attend_to_cache(Stream& stream, const AttentionShape& shape, std::int64_t first, HeadsOf q,
                     HeadsOf k, HeadsOf v, HeadsInto out, Tensor& cache);

}  // namespace troupe::kernels
