#include "models/description/names.h"

namespace troupe::models {

const Value* Names::find(std::string_view name) const {
  if (name == "given") return &given_;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (entry->name == name) return &entry->value;
  return nullptr;
}

std::vector<std::string_view> Names::all() const {
  std::vector<std::string_view> names{"given"};
  for (const auto& entry : entries_) names.emplace_back(entry.name);
  return names;
}

}  // namespace troupe::models
