#pragma once

#include <caf/all.hpp>

#include "actors/caf_shim.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Spawns an optimizer for a section of a stage's weights: it sums the gradients of the stage's
/// holders, takes the step, and publishes the new version. Only it changes these weights, and it
/// owns their moments. `start` is its part of the start state.
caf::actor spawn_optimizer_actor(const caf_shim::Spawner& spawner, RunSpecPtr spec, int optimizer,
                                 StartPoint start);

}  // namespace troupe::actors
