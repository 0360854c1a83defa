#pragma once

#include <caf/all.hpp>
#include <memory>

#include "actors/play/keep.h"

namespace troupe::actors {

/// Takes what optimizers give to be kept in this process, and tells the supervisor once it is.
caf::actor spawn_keeper(caf::actor_system& system, std::shared_ptr<Keep> keep);

}  // namespace troupe::actors
