#pragma once

#include <cstdint>
#include <optional>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// The form of the loss. By default every target counts, and the loss is -log softmax(target).
struct CrossEntropyForm {
  /// The target of rows that do not count. Their loss is 0, and so is its gradient.
  std::optional<std::int32_t> ignore = std::nullopt;
  /// The share of a target's weight that all classes get, equally much each.
  float smoothing = 0;
  /// The weight of logsumexp(logits)^2, which the loss then includes (z-loss).
  float z = 0;
};

/// Computes losses[r] = logsumexp(logits[r]) - logits[r, targets[r]] and, in the same pass,
/// dlogits[r, c] = (softmax(logits[r])[c] - (c == targets[r])) * scale, or what the form says. It
/// walks the vocabulary in chunks, so that each row is read once while in cache. `dlogits` may be
/// `logits`, or null if only losses are wanted. Targets must lie in [0, classes) or be
/// `form.ignore`: the loader has checked them.
void softmax_cross_entropy(Stream& stream, const float* logits, const std::int32_t* targets,
                           float* losses, float* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale, const CrossEntropyForm& form = {});

}  // namespace troupe::kernels
