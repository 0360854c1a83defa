#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// Computes losses[r] = logsumexp(logits[r]) - logits[r, targets[r]] and, in the same pass,
/// dlogits[r, c] = (softmax(logits[r])[c] - (c == targets[r])) * scale. It walks the vocabulary in
/// chunks, so that each row is read once while in cache. `dlogits` may be `logits`, or null if only
/// losses are wanted. Targets must lie in [0, classes): the loader has checked them.
void softmax_cross_entropy(Stream& stream, const float* logits, const std::int32_t* targets,
                           float* losses, float* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale);

}  // namespace troupe::kernels
