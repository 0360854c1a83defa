#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/memory/dtype.h"
#include "core/memory/shape.h"
#include "models/kept_values.h"
#include "models/layer.h"

namespace troupe::models {

/// The smallest piece that a plan assigns to a stage: a transformer block, a residual block, a
/// linear layer. The first unit includes the layers before the first block (embedding). The last
/// one includes those behind the last block (norm, head).
struct Unit {
  std::string name;
  LayerPtr layer;
};

/// The shapes of one sample.
struct SampleForm {
  /// Without the batch: [context] tokens, [channels, height, width] or [features]. A sample may
  /// have fewer tokens than the context. A height or width of 0 accepts any size.
  Shape input;
  DType input_type = DType::f32;
  Shape target;  // [context] tokens, or [] for one class.

  /// Returns whether a sample may have this shape. A text may be shorter than the context.
  bool takes(const Shape& given) const;
};

/// A network as a list of units, and its loss. Immutable. Holds no weights.
struct Model {
  std::string kind;
  std::vector<Unit> units;
  LayerPtr loss;  // Takes logits, returns one loss per target.
  SampleForm sample;
  std::int64_t classes = 0;                 // The width of the logits: classes or vocabulary.
  std::optional<std::int32_t> ignore = {};  // The target that does not count.
  std::vector<KeptValue> kept = {};
  std::set<std::string> frozen = {};  // The names of parameters that training leaves as they are.

  /// Returns whether a unit before this one has a parameter that is trained.
  bool trains_before(int unit) const;
};

}  // namespace troupe::models
