#pragma once

#include <caf/all.hpp>

#include "actors/run_spec.h"

namespace troupe::actors {

/// Hands events to whoever shows and keeps them, in the order in which they come, keeps the ledger,
/// and remembers what every device did in the newest rounds.
caf::actor spawn_recorder(caf::actor_system& system, RunSpecPtr spec, caf::actor supervisor);

}  // namespace troupe::actors
