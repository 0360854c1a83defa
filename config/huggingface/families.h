#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "models/description/model_kind.h"

namespace troupe::config {

/// The key of config.json that contains our model options as they are.
constexpr std::string_view own_key = "troupe";

/// A type of models, and the kind and the entry that describe it.
struct Family {
  const models::ModelKind* kind = nullptr;
  const models::HuggingFace* entry = nullptr;
  std::string type;
  std::string architecture;
  Value options;  // The options of the preset that timm means, or null.

  bool is_of_timm() const { return entry->library == models::HuggingFace::Library::timm; }
};

/// Returns all types that the kinds describe.
std::vector<Family> families(std::span<const models::ModelKind> kinds);
/// Returns the option of that name, which the kind has.
const models::Option& option_of(const Family& family, std::string_view name);
/// Returns the options that all models of a type have, or null.
const Value* fixed_of(const Family& family);
/// Returns the value at a path such as "rope_parameters.factor", or null.
const Value* at_path(const Value& config, std::string_view path);
/// Returns whether two values of options are equal: 12 equals 12.0.
bool same(const Value& a, const Value& b);

}  // namespace troupe::config
