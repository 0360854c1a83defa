#include "models/train/shared_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace troupe::models {

std::vector<SharedParameter> shared_parameters(const Model& model,
                                               std::span<const UnitRange> stages) {
  std::map<std::string, std::set<int>> users;
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    const auto [first, last] = stages[static_cast<std::size_t>(stage)];
    for (int unit = first; unit < last; ++unit)
      for (const auto& parameter : model.units[static_cast<std::size_t>(unit)].layer->parameters())
        users[parameter.name].insert(stage);
  }
  std::vector<SharedParameter> shared;
  for (const auto& [name, by] : users)
    if (by.size() > 1) shared.push_back({name, {by.begin(), by.end()}});
  return shared;
}

bool borrows(const SharedParameter& parameter, int stage) {
  return parameter.stages[0] != stage &&
         std::ranges::find(parameter.stages, stage) != parameter.stages.end();
}

std::vector<std::string> borrowed_by(std::span<const SharedParameter> shared, int stage) {
  std::vector<std::string> names;
  for (const auto& parameter : shared)
    if (borrows(parameter, stage)) names.push_back(parameter.name);
  return names;
}

Status check_shared(const StalenessOptions& staleness, std::span<const SharedParameter> shared) {
  if (shared.empty() || staleness.delay_compensation == 0) return Done{};
  return Error{
      "staleness.delay_compensation mends each gradient by how far its weights have moved, but '" +
      shared[0].name + "' has uses in stages " + std::to_string(shared[0].stages[0]) + " and " +
      std::to_string(shared[0].stages[1]) +
      ", and only the first of them knows; cut the model so that one stage has all uses, "
      "or untie them"};
}

}  // namespace troupe::models
