#include "models/parameter.h"

#include <cassert>
#include <cmath>

namespace troupe::models {

Init Init::by_inputs(std::int64_t inputs) {
  assert(inputs > 0);
  return {Kind::uniform, static_cast<float>(1 / std::sqrt(static_cast<double>(inputs)))};
}

kernels::LinearShape linear_shape(const Parameter& matrix, kernels::Precision precision) {
  assert(matrix.use == Parameter::Use::matrix && matrix.shape.rank() >= 2);
  const std::int64_t first = matrix.shape[0];
  const std::int64_t rest = matrix.shape.count() / first;
  switch (matrix.layout) {
    case kernels::WeightLayout::out_in:
      return {.inputs = rest, .outputs = first, .layout = matrix.layout, .precision = precision};
    case kernels::WeightLayout::in_out:
      return {.inputs = first, .outputs = rest, .layout = matrix.layout, .precision = precision};
  }
  return {};
}

}  // namespace troupe::models
