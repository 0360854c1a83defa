#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "models/staleness.h"
#include "models/train/stage.h"

namespace troupe::models {

/// A tied parameter whose uses lie in several stages.
struct SharedParameter {
  std::string name;
  std::vector<int> stages;  // Two or more, in ascending order.
};

/// Returns the shared parameters of a model whose stages are these ranges of units.
std::vector<SharedParameter> shared_parameters(const Model& model,
                                               std::span<const UnitRange> stages);

/// Returns whether the stage uses a parameter that another stage owns.
bool borrows(const SharedParameter& parameter, int stage);
/// Returns the names of the parameters that a stage borrows.
std::vector<std::string> borrowed_by(std::span<const SharedParameter> shared, int stage);

/// Rejects corrections of late gradients that shared parameters rule out. The owner can penalise a
/// borrower's gradient: it knows how far the parameter moved. It cannot compensate delay, for which
/// it would need each micro-batch's gradient: a borrower sends sums.
Status check_shared(const StalenessOptions& staleness, std::span<const SharedParameter> shared);

}  // namespace troupe::models
