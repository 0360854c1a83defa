#pragma once

#include <caf/all.hpp>
#include <functional>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Leads a run from a start point to its end: gives out rounds, decides steps, evaluates and saves
/// where the configuration says, and makes a new cast from the newest checkpoint when an actor
/// fails. `ended` is called once, when all other actors of the run are gone.
///
/// Whoever spawns it keeps the handle until then. It takes Drain, StopNow, Pause and Resume.
caf::actor spawn_supervisor(caf::actor_system& system, RunSpecPtr spec, StartPoint start,
                            std::function<void(Outcome)> ended);

}  // namespace troupe::actors
