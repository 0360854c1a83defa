#pragma once

#include <caf/all.hpp>
#include <functional>

#include "actors/caf_shim.h"
#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Spawns the supervisor, which leads a run from a start point to its end: it gives out rounds,
/// counts steps and evaluates as configured, does at boundaries what the run's machine orders
/// (actors/decide/), and replaces all players when one fails. It calls `ended` once, when all other
/// actors of the run have ended or did not end in time. If the supervisor dies, the other actors
/// end, and the last one calls `ended`: the run has failed and can be resumed.
///
/// The caller keeps the handle until then. The supervisor takes Drain, StopNow, Pause and Resume.
caf::actor spawn_supervisor(const caf_shim::Spawner& spawner, RunSpecPtr spec, StartPoint start,
                            std::function<void(Outcome)> ended);

}  // namespace troupe::actors
