#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::models {

struct Model;

/// Settings for the parameters whose names match a pattern, in place of the optimizer's own.
struct ParameterGroup {
  /// Patterns, as matches_pattern() takes them.
  std::vector<std::string> match = {};
  std::optional<double> weight_decay = {};  // Unset: the optimizer's.
  bool frozen = false;                      // Training leaves the parameters as they are.
  double lr = 1;                            // A factor on the learning rate of every step.

  bool matches(std::string_view name) const;

  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// Returns the index of the first group that matches a parameter's name, or nothing.
std::optional<std::size_t> group_of(std::span<const ParameterGroup> groups, std::string_view name);

/// Returns the names of a model's parameters in order, each once.
std::vector<std::string> parameter_names(const Model& model);

/// Marks the parameters of frozen groups in the model.
void freeze(Model& model, std::span<const ParameterGroup> groups);

/// Returns the names that each group takes, and at the end those that none takes.
std::vector<std::vector<std::string>> taken_by(std::span<const ParameterGroup> groups,
                                               const std::vector<std::string>& names);

}  // namespace troupe::models
