#pragma once

#include <caf/all.hpp>
#include <memory>

#include "actors/run_spec.h"

namespace troupe::actors {

/// Makes the versions of one stage's weights: it adds up what the stage's holders give away, steps,
/// and publishes. It alone changes weights, and it owns the moments. `start` is where it begins.
caf::actor spawn_optimizer_actor(caf::actor_system& system, RunSpecPtr spec, int stage,
                                 std::shared_ptr<const StartPoint> start);

}  // namespace troupe::actors
