#pragma once

#include <vector>

#include "models/description/step_kind.h"
#include "models/layer.h"

namespace troupe::models {

/// The layers of a unit that is being made, or of a list of steps within one.
using Layers = std::vector<BuiltLayer>;

/// Returns all of them as one layer.
LayerPtr sequence_of(Layers layers);
BuiltLayer plain(LayerPtr layer);
/// Adds a residual. One that begins with a norm of rows joins the residual stream before it.
void add_residual(Layers inner, Layers shortcut, Layers& into);

}  // namespace troupe::models
