#pragma once

#include <caf/all.hpp>
#include <memory>

#include "actors/caf_shim.h"
#include "actors/play/state_store.h"

namespace troupe::actors {

/// Spawns a keeper: it stores states that optimizers send, and reports each copy to the supervisor.
caf::actor spawn_keeper(const caf_shim::Spawner& spawner, std::shared_ptr<StateStore> state_store);

}  // namespace troupe::actors
