#pragma once

#include <caf/all.hpp>
#include <functional>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Leads a run from a start point to its end: gives out rounds, decides steps, evaluates and saves
/// where the configuration says, and makes a new cast from the newest checkpoint when an actor
/// fails. `ended` is called once, when all other actors of the run are gone, or did not go when
/// they were told to. Where the supervisor itself dies, the others end by themselves, and the last
/// one calls `ended`: the run has failed, and can be resumed as after a crash.
///
/// Whoever spawns it keeps the handle until then. It takes Drain, StopNow, Pause and Resume.
caf::actor spawn_supervisor(caf::actor_system& system, RunSpecPtr spec, StartPoint start,
                            std::function<void(Outcome)> ended);

}  // namespace troupe::actors
