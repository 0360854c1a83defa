#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/memory/dtype.h"
#include "core/memory/shape.h"
#include "core/number_bounds.h"
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
  /// The first input, without the batch: [context] tokens, [channels, height, width] or
  /// [features]. A sample may have fewer tokens than the context if there is one input. A height or
  /// width of 0 accepts any size.
  Shape input;
  DType input_type = DType::f32;
  Shape target;  // [context] tokens, [] for one class, or the output's shape for numbers.
  std::string input_name = {};
  IntegerBounds bounds = {};  // The bounds of the first input.
  DType target_type = DType::i32;
  NumberBounds target_bounds = {};  // The bounds of targets in f32.

  /// An input behind the first one. It has exactly this shape, without the batch. Its bounds are
  /// those of the value in Model::kept that has its place here.
  struct Input {
    std::string name;
    Shape shape;
    DType type = DType::f32;
  };
  std::vector<Input> more = {};

  /// Returns whether the first input may have this shape.
  bool takes(const Shape& given) const;
};

/// A network as a list of units, and its loss. Immutable. Holds no weights.
struct Model {
  std::string kind;
  std::vector<Unit> units;
  LayerPtr loss;  // Takes logits, returns one loss per target.
  SampleForm sample;
  /// The width of the logits: classes or vocabulary. 0 if targets are numbers.
  std::int64_t classes = 0;
  std::optional<std::int32_t> ignore = {};  // The target that does not count.
  std::vector<KeptValue> kept = {};         // The inputs of SampleForm::more come first.
  std::set<std::string> frozen = {};  // The names of parameters that training leaves as they are.

  /// Returns whether the model reads tokens and predicts one for each.
  bool predicts_tokens() const { return sample.input_type == DType::i32 && classes > 0; }
  /// Returns whether a target may not count. In f32, one that is NaN does not.
  bool may_leave_out() const { return ignore.has_value() || sample.target_type == DType::f32; }
  /// Returns whether the units from this one on can continue a text (Stage::continue_text): no row
  /// of it depends on later rows or on other samples, and no other input depends on it. `text` has
  /// the places in SampleForm::more of the inputs with a row for each token. Empty: the text is the
  /// first input, and the only one.
  bool continues_from(int unit, const std::vector<std::size_t>& text = {}) const;
  /// Returns whether a unit before this one has a parameter that is trained.
  bool trains_before(int unit) const;
};

}  // namespace troupe::models
