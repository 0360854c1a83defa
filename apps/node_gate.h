#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "actors/node_pool.h"
#include "core/result.h"
#include "transport/channel_thread.h"
#include "transport/control_socket.h"
#include "transport/conversation.h"

namespace troupe::apps {

struct GateOptions {
  transport::ServerOptions listening;
  std::uint64_t term = 1;  // Of this head.
  /// For a node whose connection has ended, though nobody says that its process has.
  std::chrono::milliseconds reconnect_patience{1000};
};

/// What happens at a gate; must not wait. A node is named by its incarnation.
struct GateEvents {
  std::function<void(const actors::NodeHere&)> joined = [](const actors::NodeHere&) {};
  std::function<void(const actors::NodeHere&, const std::string& why)> lost;
  /// It wants to go, and gets nothing new any more.
  std::function<void(const actors::NodeHere&, const std::string& why)> leaving;
  /// Of a run, from a node.
  std::function<void(std::uint64_t node, transport::Message)> about_run;
  /// All else.
  std::function<void(const transport::Peer&, transport::Message)> asked = [](const transport::Peer&,
                                                                             transport::Message) {};
  /// Nodes know a head that came after this one.
  std::function<void(std::uint64_t term)> deposed = [](std::uint64_t) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// Where nodes dial, and the nodes that have. One whose connection ends and comes back has missed
/// nothing.
class NodeGate {
 public:
  static Result<std::unique_ptr<NodeGate>> open(GateOptions options, GateEvents events);
  /// Nobody is heard any more.
  ~NodeGate();
  NodeGate(const NodeGate&) = delete;
  NodeGate& operator=(const NodeGate&) = delete;

  const std::string& endpoint() const { return server_->endpoint(); }
  actors::NodePool& nodes() { return nodes_; }
  transport::ChannelThread& channels() { return channels_; }
  /// To one who has asked.
  Status answer(transport::PeerId peer, transport::Message message);
  /// A process of a host is no more, and need not be waited for.
  void process_ended(const actors::ExitNotice& notice);

 private:
  using Clock = std::chrono::steady_clock;

  /// A node, with or without a connection.
  struct Line {
    std::shared_ptr<transport::Conversation> conversation;
    std::string wanted;          // Its name, as it wants it.
    transport::PeerId peer = 0;  // 0: its connection has ended,
    Clock::time_point lost_at;   // and it is lost then,
    std::string why;             // because of this.
  };

  NodeGate(GateOptions options, GateEvents events);
  void heard(const transport::Peer& peer, transport::Message message);
  void heard_from_node(std::uint64_t node, transport::Message message);
  void join(const transport::Peer& peer, const transport::Message& message);
  void welcome(const actors::NodeHere& node, transport::PeerId peer,
               const transport::Message& join);
  void gone(const transport::Peer& peer, const std::string& why);
  /// Where it is there.
  void lose(std::uint64_t node, const std::string& why);
  void watch();
  Status send(std::uint64_t node, const transport::Message& message);
  std::shared_ptr<transport::Conversation> conversation_with(std::uint64_t node);

  GateOptions options_;
  GateEvents events_;
  const std::uint64_t incarnation_;
  transport::ChannelThread channels_;
  actors::NodePool nodes_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Line> lines_;  // By incarnation.
  bool closing_ = false;

  std::latch opened_{1};  // Somebody may be heard before bind() has returned.
  std::unique_ptr<transport::ControlServer> server_;
  std::thread watch_;  // Loses those who do not come back.
};

}  // namespace troupe::apps
