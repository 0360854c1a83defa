#pragma once

#include <string_view>
#include <vector>

#include "config/schema/fields.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"

namespace troupe::config {

/// Keys of structs that other folders define, with the members that hold their values.
Fields<models::OptimizerConfig> optimizer_fields();
Fields<models::StalenessOptions> staleness_fields();
/// Returns the keys of one table in `optimizer.group`, with names relative to it.
std::vector<Key> group_keys();

/// A table of the configuration and its description.
struct Section {
  std::string_view name;
  std::string_view help;
};
const std::vector<Section>& sections();

/// A named group of settings of `staleness`.
struct Preset {
  std::string_view name;
  std::string_view predict;
  std::string_view linearize_at;
  std::string_view gap_penalty;
  enum class Recompute { free, needed } recompute = Recompute::free;
};
const std::vector<Preset>& presets();

}  // namespace troupe::config
