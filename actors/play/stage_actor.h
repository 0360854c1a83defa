#pragma once

#include <caf/all.hpp>

#include "actors/run_spec.h"

namespace troupe::actors {

/// Plays the lane of one device: each action when its inputs have come, never in another order, so
/// that no result depends on when messages arrive.
caf::actor spawn_stage_actor(caf::actor_system& system, RunSpecPtr spec, int replica, int device);

}  // namespace troupe::actors
