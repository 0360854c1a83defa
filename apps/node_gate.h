#pragma once

#include <functional>
#include <latch>
#include <memory>
#include <string>

#include "actors/node_pool.h"
#include "core/result.h"
#include "transport/channel_thread.h"
#include "transport/control_socket.h"

namespace troupe::apps {

/// What happens at a gate, on the thread of its socket: must not wait.
struct GateEvents {
  std::function<void(const actors::NodeHere&)> joined = [](const actors::NodeHere&) {};
  std::function<void(const std::string& name, std::uint64_t peer, const std::string& why)> lost;
  /// Of a run, from a node.
  std::function<void(std::uint64_t peer, transport::Message)> about_run;
  /// All else.
  std::function<void(const transport::Peer&, transport::Message)> asked = [](const transport::Peer&,
                                                                             transport::Message) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Where nodes dial, and the nodes that have.
class NodeGate {
 public:
  static Result<std::unique_ptr<NodeGate>> open(transport::ServerOptions listening,
                                                GateEvents events);
  /// Nobody is heard any more.
  ~NodeGate();
  NodeGate(const NodeGate&) = delete;
  NodeGate& operator=(const NodeGate&) = delete;

  const std::string& endpoint() const { return server_->endpoint(); }
  actors::NodePool& nodes() { return nodes_; }
  transport::ChannelThread& channels() { return channels_; }
  Status send(std::uint64_t peer, const transport::Message& message) {
    return server_->send(peer, message);
  }

 private:
  explicit NodeGate(GateEvents events);
  void heard(const transport::Peer& peer, transport::Message message);
  void join(const transport::Peer& peer, const transport::Message& message);
  void gone(const transport::Peer& peer, const std::string& why);

  GateEvents events_;
  transport::ChannelThread channels_;
  actors::NodePool nodes_;
  std::latch opened_{1};  // Somebody may be heard before bind() has returned.
  std::unique_ptr<transport::ControlServer> server_;
};

}  // namespace troupe::apps
