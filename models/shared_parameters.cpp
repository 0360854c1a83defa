#include "models/shared_parameters.h"

#include <map>
#include <set>

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

}  // namespace troupe::models
