#pragma once

#include <caf/all.hpp>

#include "actors/run_spec.h"

namespace troupe::actors {

/// What of a sample a loader sends: inputs go to the first stage, targets straight to the last.
enum class Half : std::uint8_t { inputs, targets };

/// Cuts the batches of one replica into micro-batches and sends them in the order of the lanes, as
/// far as its credit goes. The two loaders of a replica never talk: that they mean the same samples
/// is seen where both halves meet.
caf::actor spawn_loader(caf::actor_system& system, RunSpecPtr spec, int replica, Half half);

}  // namespace troupe::actors
