#pragma once

#include <caf/all.hpp>

#include "actors/caf_shim.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Spawns the actor that plays one device's lane. It runs each action when its inputs have arrived,
/// and never in another order, so that no result depends on when messages arrive.
caf::actor spawn_stage_actor(const caf_shim::Spawner& spawner, RunSpecPtr spec, int replica,
                             int device);

}  // namespace troupe::actors
