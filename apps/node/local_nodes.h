#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/nodes/remote_players.h"
#include "apps/head/node_gate.h"
#include "apps/machine/kept_process.h"
#include "apps/processes.h"
#include "core/env.h"
#include "core/result.h"
#include "transport/network.h"

namespace troupe::apps {

/// The node processes on this machine for one run, which this process leads.
class LocalNodes {
 public:
  struct Counts {
    int nodes = 1;
    int devices = 1;  // The devices of each node.
    int cores = 1;    // The cores that all nodes divide.
  };

  /// The process that leads the run. It outlives the nodes.
  struct Context {
    Env& env;
    transport::Network& network;
    Processes& processes;
  };

  /// Starts the nodes. They take turns with this machine's GPUs.
  static Result<std::unique_ptr<LocalNodes>> start(const Context& context, const Counts& counts,
                                                   actors::RemoteOrder order,
                                                   const NodePatience& patience);
  ~LocalNodes();

  actors::PlayerHost& player_host() { return *player_host_; }
  /// Gives the nodes another configuration in later attempts.
  void change(Value config) { player_host_->change_config(std::move(config)); }

 private:
  // The gate reports lost nodes to the casting, so it is destroyed before the casting. Both must
  // receive the last node's end, so the processes are destroyed first.
  std::unique_ptr<actors::RemotePlayerHost> player_host_;
  std::unique_ptr<NodeGate> gate_;
  std::vector<std::unique_ptr<KeptProcess>> processes_;
};

}  // namespace troupe::apps
