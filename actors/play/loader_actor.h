#pragma once

#include <caf/all.hpp>

#include "actors/caf_shim.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// The half of a sample that a loader sends: inputs go to the first stage, targets to the last.
enum class Half : std::uint8_t { inputs, targets };

/// Spawns a loader: it cuts one replica's batches into micro-batches and sends them in the order of
/// the lanes, as far as its credit allows. A replica's two loaders do not communicate; the last
/// stage checks that they read the same samples.
caf::actor spawn_loader(const caf_shim::Spawner& spawner, RunSpecPtr spec, int replica, Half half);

}  // namespace troupe::actors
