#include "models/train/parameter_groups.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/model.h"
#include "models/patterns.h"
#include "models/train/optimizer.h"

namespace troupe::models {

bool ParameterGroup::matches(std::string_view name) const {
  return std::ranges::any_of(
      match, [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

std::optional<std::size_t> group_of(std::span<const ParameterGroup> groups, std::string_view name) {
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i].matches(name)) return i;
  return std::nullopt;
}

std::vector<std::string> parameter_names(const Model& model) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const auto& unit : model.units)
    for (auto& parameter : unit.layer->parameters())
      if (seen.insert(parameter.name).second) names.push_back(std::move(parameter.name));
  return names;
}

void freeze(Model& model, std::span<const ParameterGroup> groups) {
  for (auto& name : parameter_names(model))
    if (const auto group = group_of(groups, name); group && groups[*group].frozen)
      model.frozen.insert(std::move(name));
}

std::vector<std::vector<std::string>> taken_by(std::span<const ParameterGroup> groups,
                                               const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> taken(groups.size() + 1);
  for (const auto& name : names)
    taken[group_of(groups, name).value_or(groups.size())].push_back(name);
  return taken;
}

OptimizerConfig OptimizerConfig::for_parameter(std::string_view name) const {
  OptimizerConfig own = *this;
  own.groups.clear();
  const auto group = group_of(groups, name);
  if (!group) return own;
  own.weight_decay = groups[*group].weight_decay.value_or(weight_decay);
  own.rate.factor = groups[*group].lr;
  return own;
}

bool OptimizerConfig::decays() const {
  return weight_decay > 0 || std::ranges::any_of(groups, [](const ParameterGroup& group) {
           return group.weight_decay.value_or(0) > 0;
         });
}

}  // namespace troupe::models
