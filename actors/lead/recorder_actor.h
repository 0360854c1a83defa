#pragma once

#include <caf/all.hpp>

#include "actors/caf_shim.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Spawns the recorder: it passes events on in order, keeps the ledger, and remembers the actions
/// of all devices in the newest rounds.
caf::actor spawn_recorder(const caf_shim::Spawner& spawner, RunSpecPtr spec, caf::actor supervisor);

}  // namespace troupe::actors
