#pragma once

#include <variant>

#include "core/value.h"
#include "models/cuts.h"
#include "models/description/description.h"
#include "models/description/fault.h"
#include "models/model.h"

namespace troupe::models {

/// Makes the model that a description describes with these options, which must be complete. Infers
/// all shapes. The result is layers: no pass reads the description.
///
/// A unit begins with each repetition of a part, with a part whose unit is "own", and after each
/// cut. Other parts join the unit behind them, and at the end the last one. With Cuts::sublayers a
/// unit also begins with each residual among the outermost steps of a part but the first.
std::variant<Model, Fault> expand(const Description& description, const Value& options, Cuts cuts);

}  // namespace troupe::models
