#pragma once

#include <caf/all.hpp>

#include "actors/run_spec.h"

namespace troupe::actors {

/// Makes the versions of a section of a stage's weights: it adds up what the stage's holders give
/// away, steps, and publishes. It alone changes these weights, and it owns their moments. `start`
/// is its part of where the run begins.
caf::actor spawn_optimizer_actor(caf::actor_system& system, RunSpecPtr spec, int optimizer,
                                 StartPoint start);

}  // namespace troupe::actors
