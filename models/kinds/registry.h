#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "core/value.h"
#include "models/kinds/option.h"
#include "models/model.h"

namespace troupe::models {

/// A family of models: what `model.kind` names.
struct ModelKind {
  std::string_view name;
  std::string_view help;
  std::span<const Option> options;
  /// `options` is the complete table: every key is there, of the right type, within its bounds.
  /// What the keys mean together (heads must divide width) is checked here.
  Result<Model> (*build)(const Value& options);
};

/// All of them. A new model is a file, and a line in registry.cpp.
std::span<const ModelKind> model_kinds();

/// Null where there is none of that name.
const ModelKind* find_model_kind(std::string_view name);

}  // namespace troupe::models
