#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory/dtype.h"
#include "core/memory/shape.h"
#include "models/layer.h"

namespace troupe::models {

/// The smallest piece that a plan moves: a transformer block, a residual block, a linear layer.
/// What comes before the first block (an embedding) belongs to the first unit, what comes after the
/// last one (norm, head) to the last.
struct Unit {
  std::string name;
  LayerPtr layer;
};

/// What one sample looks like.
struct SampleForm {
  /// Without the batch: [context] tokens, [channels, height, width] or [features]. Fewer tokens
  /// than the context will do; a height or width of 0 means any.
  Shape input;
  DType input_type = DType::f32;
  Shape target;  // [context] tokens, or [] for one class.

  /// Whether a sample may look like this. A text may be shorter than the context.
  bool takes(const Shape& given) const;
};

/// A network as a list of units, and the loss that ends it. Immutable; knows no numbers.
struct Model {
  std::string kind;
  std::vector<Unit> units;
  LayerPtr loss;  // Logits in, one loss a target out.
  SampleForm sample;
  std::int64_t classes = 0;  // Of the logits: the vocabulary.
};

}  // namespace troupe::models
