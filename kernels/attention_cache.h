#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/attention.h"

namespace troupe::kernels {

/// Attention of a text's next positions, with keys and values in a cache. Only the cores have these
/// functions. A cache is laid out as products with a single row read it. In each `shape` below the
/// batch is 1.
///
/// With a causal mask the keys are those of the text, and `length` is the number of positions that
/// the cache is for. With a window, a position takes the place of one that no later position sees.
/// With a full mask the keys are those of another sequence, which does not change (cross
/// attention). Their number is `keys`, which is given, and nothing depends on `length`.

/// Allocates a cache. Its keys and values are not initialized. With a causal mask it has the biases
/// of distances, too, if the shape has buckets. `biases` are those of AttentionData.
Tensor make_attention_cache(Stream& stream, const AttentionShape& shape,
                            const float* biases = nullptr);

/// Writes the keys and values of positions first, first + 1, ... to the cache: the rows of k and v.
void keep_in_cache(Stream& stream, const AttentionShape& shape, std::int64_t first, HeadsOf k,
                   HeadsOf v, Tensor& cache);

/// Does what keep_in_cache() does, and computes the attention of each of these positions. It has
/// the bits that attention_forward() gives to the last position of a sequence. The cache must have
/// all positions before `first` that a window lets them see.
void attend_to_cache(Stream& stream, const AttentionShape& shape, std::int64_t first, HeadsOf q,
                     HeadsOf k, HeadsOf v, HeadsInto out, Tensor& cache);

/// Computes the attention of each row of q to the other sequence, whose keys and values the cache
/// has. `span` is that of AttentionData, or null. The rows have the bits that attention_forward()
/// gives them.
void attend_to_sequence(Stream& stream, const AttentionShape& shape, HeadsOf q,
                        const std::int32_t* span, HeadsInto out, const Tensor& cache);

}  // namespace troupe::kernels
