#pragma once

#include "actors/caf_shim.h"
#include "actors/executors.h"
#include "apps/host_facts.h"
#include "core/env.h"
#include "storage/files/files.h"
#include "transport/network.h"

namespace troupe::apps {

/// All that a head, a node or a daemon takes from outside. Main functions make the real one
/// (apps/real/real_context.h), and a simulator makes another for each simulated process. Everything
/// in it outlives the program.
struct ProgramContext {
  Env& env;
  transport::Network& network;
  storage::Files& files;
  const HostFacts& host;
  actors::caf_shim::Systems& systems;
  actors::Executors& executors;
};

}  // namespace troupe::apps
