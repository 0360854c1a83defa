#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/nodes/remote_players.h"
#include "apps/head/node_gate.h"
#include "apps/machine/kept_process.h"
#include "core/result.h"

namespace troupe::apps {

/// Node processes on this machine that play one run which this process leads.
class LocalNodes {
 public:
  /// They share its cores, and take turns with its GPUs: so many devices has each.
  static Result<std::unique_ptr<LocalNodes>> start(int count, int devices,
                                                   actors::RemoteOrder order,
                                                   const NodePatience& patience);
  ~LocalNodes();

  actors::PlayerHost& player_host() { return *player_host_; }

 private:
  // The gate tells the casting of nodes that go, so it goes before it; and both hear of the last.
  std::unique_ptr<actors::RemotePlayerHost> player_host_;
  std::unique_ptr<NodeGate> gate_;
  std::vector<std::unique_ptr<KeptProcess>> processes_;
};

}  // namespace troupe::apps
