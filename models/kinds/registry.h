#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "core/value.h"
#include "models/description/option.h"
#include "models/model.h"

namespace troupe::models {

/// A family of models, selected by `model.kind`.
struct BuiltInKind {
  std::string_view name;
  std::string_view help;
  std::span<const Option> options;
  /// Builds the model and checks keys against each other (heads must divide width). `options` must
  /// be complete: every key is present, of the right type and within its bounds.
  Result<Model> (*build)(const Value& options);
};

/// Returns all kinds. A new model is a source file and a line in registry.cpp.
std::span<const BuiltInKind> model_kinds();

/// Returns the kind of that name, or null.
const BuiltInKind* find_model_kind(std::string_view name);

}  // namespace troupe::models
