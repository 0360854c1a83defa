#pragma once

#include <string_view>
#include <vector>

#include "config/schema.h"

namespace troupe::config {

constexpr double most_steps = 1e12;

/// The rows that this folder knows by itself, which are all but `model`: first the tables that say
/// what is computed, then those that say where, how long and how safely.
std::vector<Key> recipe_keys();
std::vector<Key> plan_keys();

/// A table of the configuration, and what it is about.
struct Section {
  std::string_view name;
  std::string_view help;
};
const std::vector<Section>& sections();

/// Settings of `staleness` that go by one name.
struct Preset {
  std::string_view name;
  std::string_view predict;
  std::string_view linearize_at;
  std::string_view gap_penalty;
  enum class Recompute { free, needed } recompute = Recompute::free;
};
const std::vector<Preset>& presets();

}  // namespace troupe::config
