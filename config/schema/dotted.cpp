#include "config/schema/dotted.h"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::config {

const Value* value_at(const Value& tree, std::string_view name) {
  const Value* value = &tree;
  while (value && !name.empty()) {
    const auto dot = std::min(name.find('.'), name.size());
    value = value->find(name.substr(0, dot));
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return value;
}

void set_at(Value& tree, std::string_view name, Value value) {
  Value* table = &tree;
  for (auto dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
    const std::string part(name.substr(0, dot));
    Value* inner = table->find(part);
    table = inner ? inner : &table->set(part, Value(Value::Map{}));
    name.remove_prefix(dot + 1);
  }
  table->set(std::string(name), std::move(value));
}

}  // namespace troupe::config
