#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "core/value.h"
#include "models/description/model_kind.h"

namespace troupe::config {

/// Returns the kinds of models that the program comes with: the descriptions in config/models/,
/// which are compiled in, and read at the first call.
std::span<const models::ModelKind> model_kinds();

/// Returns the kind of that name, or null.
const models::ModelKind* find_model_kind(std::string_view name);

/// A preset, and the kind of models that it belongs to. Both pointers are null if there is none.
struct FoundPreset {
  const models::ModelKind* kind = nullptr;
  const models::Preset* preset = nullptr;

  explicit operator bool() const { return preset != nullptr; }
};
/// Returns the preset of that name, of a kind that the program comes with.
FoundPreset find_preset(std::string_view name);

/// Returns the kind of a table as checkpoints hold it: that of its `description`, or else the one
/// that its `kind` names.
Result<models::ModelKind> kind_of(const Value& table);

/// Builds the model of such a table. Missing options take their defaults.
Result<models::Model> model_from(const Value& table, models::Cuts cuts = models::Cuts::layers);

/// Returns the table of a model with the same weights that writes a text: a text is one document,
/// so that nothing keeps documents apart (`apart`).
Value table_of_writer(Value table);

/// Returns the text of the description of a kind that find_model_kind() finds.
std::string_view model_kind_text(std::string_view name);

}  // namespace troupe::config
