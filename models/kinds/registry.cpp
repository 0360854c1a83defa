#include "models/kinds/registry.h"

#include <algorithm>
#include <array>

#include "models/kinds/kinds.h"

namespace troupe::models {

std::span<const BuiltInKind> model_kinds() {
  static const std::array kinds{mlp(), gpt2(), llama(), vit(), resnet()};
  return kinds;
}

const BuiltInKind* find_model_kind(std::string_view name) {
  const auto kinds = model_kinds();
  const auto found = std::ranges::find(kinds, name, &BuiltInKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace troupe::models
