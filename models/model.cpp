#include "models/model.h"

namespace troupe::models {

bool SampleForm::takes(const Shape& given) const {
  if (given.rank() != input.rank()) return false;
  if (input_type == DType::i32) return given[0] >= 1 && given[0] <= input[0];
  for (int i = 0; i < input.rank(); ++i)
    if (input[i] != 0 && given[i] != input[i]) return false;
  return true;
}

}  // namespace troupe::models
