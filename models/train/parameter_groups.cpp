#include "models/train/parameter_groups.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/model.h"
#include "models/train/optimizer.h"

namespace troupe::models {

/// After a mismatch it goes back to the last `*` alone, which suffices and takes no more than
/// pattern times name steps.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, letter = 0, star = pattern.npos, resumed = 0;
  while (letter < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resumed = letter;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[letter])) {
      ++at;
      ++letter;
    } else if (star != pattern.npos) {
      at = star + 1;
      letter = ++resumed;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

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
