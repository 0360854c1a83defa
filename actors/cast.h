#pragma once

#include <caf/all.hpp>
#include <string>
#include <vector>

#include "actors/messages.h"

namespace troupe::actors {

/// An actor of a cast, and what a person calls it: "device 1", "optimizer of stage 0".
struct Player {
  caf::actor actor;
  std::string title;
};

struct Company {
  CastPtr cast;
  std::vector<Player> players;  // All but the supervisor and the recorder.
};

/// Spawns all actors of an attempt, and lets them meet.
Company spawn_company(caf::actor_system& system, const RunSpecPtr& spec, caf::actor supervisor,
                      caf::actor recorder, StartPoint start);

}  // namespace troupe::actors
