#include "config/huggingface/families.h"

#include <algorithm>
#include <utility>

#include "core/json.h"

namespace troupe::config {

std::vector<Family> families(std::span<const models::ModelKind> kinds) {
  std::vector<Family> all;
  for (const auto& kind : kinds)
    for (const auto& entry : kind.hugging_face())
      for (const auto& type : entry.types)
        all.push_back({&kind, &entry, type.name, type.architecture, type.options});
  return all;
}

const models::Option& option_of(const Family& family, std::string_view name) {
  return *std::ranges::find(family.kind->options(), name, &models::Option::name);
}

const Value* fixed_of(const Family& family) {
  const auto found =
      std::ranges::find(family.entry->fixed, family.type, &std::pair<std::string, Value>::first);
  return found == family.entry->fixed.end() ? nullptr : &found->second;
}

bool same(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  return to_json(a) == to_json(b);
}

const Value* at_path(const Value& config, std::string_view path) {
  const auto dot = path.find('.');
  const Value* value = config.find(path.substr(0, dot));
  return !value || dot == path.npos ? value : at_path(*value, path.substr(dot + 1));
}

}  // namespace troupe::config
