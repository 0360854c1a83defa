#pragma once

#include <memory>

#include "core/threads/real_env.h"
#include "transport/real_network.h"

namespace troupe::apps {

/// The network of a command that asks a head, with a loop for the callbacks of its sockets.
struct ClientNetwork {
  RealEnv env;
  transport::RealNetwork network;
  std::unique_ptr<Loop> loop = env.make_loop({"client"});
};

}  // namespace troupe::apps
