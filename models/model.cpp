#include "models/model.h"

namespace troupe::models {

bool SampleForm::takes(const Shape& given) const {
  if (given.rank() != input.rank()) return false;
  if (input_type == DType::i32 && more.empty()) return given[0] >= 1 && given[0] <= input[0];
  for (int i = 0; i < input.rank(); ++i)
    if (input[i] != 0 && given[i] != input[i]) return false;
  return true;
}

bool Model::trains_before(int unit) const {
  for (int i = 0; i < unit; ++i)
    for (const auto& parameter : units[static_cast<std::size_t>(i)].layer->parameters())
      if (!frozen.contains(parameter.name)) return true;
  return frozen.empty() && unit > 0;
}

}  // namespace troupe::models
