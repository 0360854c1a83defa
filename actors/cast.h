#pragma once

#include <caf/all.hpp>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/recovery.h"

namespace troupe::actors {

/// "device 1 of replica 0"; where there is one replica, "device 1".
std::string device_title(const RunSpec& spec, int replica, int device);

/// An actor of a cast, and what is known of it.
struct Player {
  caf::actor actor;
  Standing standing;
};

struct Company {
  CastPtr cast;
  std::vector<Player> players;  // All but the supervisor and the recorder.
};

/// What all attempts of a run have in common.
struct Backstage {
  RunSpecPtr spec;
  caf::actor supervisor;
  caf::actor recorder;
  std::shared_ptr<Ending> ending;
};

/// Spawns all actors of an attempt, and lets them meet.
Company spawn_company(caf::actor_system& system, const Backstage& backstage, int attempt,
                      StartPoint start);

}  // namespace troupe::actors
