#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/cuts.h"
#include "models/description/fault.h"
#include "models/description/hugging_face.h"
#include "models/description/names.h"
#include "models/description/option.h"
#include "models/description/preset.h"
#include "models/model.h"

namespace troupe::models {

struct Description;

/// A family of models, read from a description. Immutable; copies are cheap.
class ModelKind {
 public:
  /// Reads a description: TOML as a tree, or the same tree from a message. Nothing in it is
  /// believed.
  static std::variant<ModelKind, Fault> read(const Value& tree);

  const std::string& name() const;
  const std::string& help() const;  // One sentence.
  std::span<const Option> options() const;
  /// Returns the number of inputs that its models take at most.
  std::size_t inputs() const;
  /// Names that a configuration may give in place of the kind's.
  std::span<const Preset> presets() const;
  /// How folders of Hugging Face describe such models. Empty: in no way.
  std::span<const HuggingFace> hugging_face() const;

  /// Returns the type of targets.
  DType target_type() const;
  /// Returns the bounds of targets in f32.
  NumberBounds target_bounds() const;
  /// Returns whether the loss of such models leaves targets out, if a configuration says nothing.
  bool may_ignore() const;
  /// Returns the target that it leaves out, unless that depends on options.
  std::optional<std::int32_t> ignored_target() const;

  /// Returns the names that formulas can use: `options` and what the description defines with them.
  Names names_of(const Value& options) const;

  /// Builds the model, and checks options against each other (heads must divide width). `options`
  /// must be complete: every key is present, of the right type and within its bounds.
  std::variant<Model, Fault> expand(const Value& options, Cuts cuts = Cuts::layers) const;
  /// As above, with the fault as a text that begins with its place.
  Result<Model> build(const Value& options, Cuts cuts = Cuts::layers) const;

 private:
  explicit ModelKind(std::shared_ptr<const Description> description);

  std::shared_ptr<const Description> description_;
};

}  // namespace troupe::models
