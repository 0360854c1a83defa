#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// losses[r] = logsumexp(logits[r]) - logits[r, targets[r]], and in the same go
/// dlogits[r, c] = (softmax(logits[r])[c] - (c == targets[r])) * scale. The vocabulary is walked in
/// chunks, so that a row is read once while it is in the cache. `dlogits` may be `logits`, or null
/// where only the losses are wanted. Targets must lie in [0, classes): the loader has checked them.
void softmax_cross_entropy(Stream& stream, const float* logits, const std::int32_t* targets,
                           float* losses, float* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale);

}  // namespace troupe::kernels
