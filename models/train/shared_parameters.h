#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "models/staleness.h"
#include "models/train/stage.h"

namespace troupe::models {

/// A tied parameter whose uses a plan cuts apart.
struct SharedParameter {
  std::string name;
  std::vector<int> stages;  // Two or more, in ascending order.
};

/// Those of a model whose stages are these ranges of its units.
std::vector<SharedParameter> shared_parameters(const Model& model,
                                               std::span<const UnitRange> stages);

/// Whether the stage uses it and another one owns it.
bool borrows(const SharedParameter& parameter, int stage);
/// The names of those that a stage borrows.
std::vector<std::string> borrowed_by(std::span<const SharedParameter> shared, int stage);

/// Whether late gradients can be mended where stages share parameters. A penalty can: the owner
/// alone knows how far a parameter moved, and divides what a user gives by it. Compensation cannot:
/// it wants the square of each micro-batch's gradient, and a user's gradients come as sums.
Status check_shared(const StalenessOptions& staleness, std::span<const SharedParameter> shared);

}  // namespace troupe::models
