#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/stage.h"

namespace troupe::models {

/// A tied parameter whose uses a plan cuts apart.
struct SharedParameter {
  std::string name;
  std::vector<int> stages;  // Two or more, in ascending order.
};

/// Those of a model whose stages are these ranges of its units.
std::vector<SharedParameter> shared_parameters(const Model& model,
                                               std::span<const UnitRange> stages);

}  // namespace troupe::models
