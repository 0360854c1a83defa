#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/nodes/node_pool.h"
#include "core/result.h"
#include "transport/channels/channel_thread.h"
#include "transport/control/control_socket.h"
#include "transport/control/conversation.h"
#include "transport/control/term_seal.h"

namespace troupe::apps {

/// The silence that a head accepts from its nodes.
struct NodePatience {
  std::chrono::nanoseconds silence_floor = std::chrono::milliseconds(300);
  /// The time for a node to reconnect, if no daemon reports the end of its process.
  std::chrono::nanoseconds reconnect = std::chrono::seconds(1);
};

struct GateOptions {
  transport::ServerOptions listening;
  std::uint64_t term = 1;    // The term of this head.
  transport::TermSeal seal;  // Proves terms between heads.
  NodePatience patience;     // Used while no run sets another one.
};

/// Callbacks of a gate; they must not wait. The incarnation identifies a node.
struct GateEvents {
  std::function<void(const actors::NodeHere&)> joined = [](const actors::NodeHere&) {};
  std::function<void(const actors::NodeHere&, const actors::NodeLoss&)> lost;
  /// The node wants to go. It gets no new work.
  std::function<void(const actors::NodeHere&, const std::string& why)> leaving;
  /// The node has reported its GPUs.
  std::function<void(const actors::NodeHere&, const std::vector<actors::GpuReading>&)> gpus =
      [](const actors::NodeHere&, const std::vector<actors::GpuReading>&) {};
  /// A node has sent a message about a run.
  std::function<void(std::uint64_t node, transport::Message)> about_run;
  /// A client has asked something.
  std::function<void(const transport::Peer&, transport::Message)> asked = [](const transport::Peer&,
                                                                             transport::Message) {};
  /// A node has proved that it knows a newer head.
  std::function<void(std::uint64_t term)> deposed = [](std::uint64_t) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// The head's end for nodes, and the nodes that have joined. A node that reconnects has missed no
/// message.
class NodeGate {
 public:
  static Result<std::unique_ptr<NodeGate>> open(GateOptions options, GateEvents events);
  /// Stops hearing peers.
  ~NodeGate();
  NodeGate(const NodeGate&) = delete;
  NodeGate& operator=(const NodeGate&) = delete;

  const std::string& endpoint() const { return server_->endpoint(); }
  actors::NodePool& nodes() { return nodes_; }
  transport::ChannelThread& channels() { return channels_; }
  /// Sets the patience that a run asks for while it is under way. The most patient run decides.
  void set_patience(const std::string& run, const NodePatience& patience);
  void forget_patience(const std::string& run);
  /// Answers a client.
  Status answer(transport::PeerId peer, transport::Message message);
  /// Notes that a process of this machine has ended, so that nobody waits for it.
  void process_ended(const actors::ExitNotice& notice);
  /// Replaces the list of keys that may dial. Sessions of other keys end.
  Status allow(transport::AllowList allowed) { return server_->allow(std::move(allowed)); }
  std::string term_proof() const { return options_.seal.prove(options_.term); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A node, with or without a connection.
  struct Line {
    std::shared_ptr<transport::Conversation> conversation = {};
    std::string wanted = {};     // The name that it wants.
    transport::PeerId peer = 0;  // 0 without a connection.
    std::string key = {};        // Empty for a plain connection.
    std::int64_t life = 0;       // The life in its Join.
    std::uint64_t refused = 0;   // Counts its bad messages.
  };

  /// Marks the time in which the gate acts on one message and hears no other peer.
  class Deafness;

  NodeGate(GateOptions options, GateEvents events);
  void heard(const transport::Peer& peer, transport::Message message);
  void heard_from_node(std::uint64_t node, transport::Message message);
  void beat(std::uint64_t node, const transport::Message& message);
  void hear_gpus(std::uint64_t node, const transport::Message& message);
  void hear_leaving(std::uint64_t node, const transport::Message& message);
  void hear_refusal(transport::PeerId peer, const std::string& who,
                    const transport::Message& message);
  /// Checks the term and the text of a message before anything acts on it.
  Status may(const transport::Peer& peer, transport::Message& message) const;
  void join(const transport::Peer& peer, const transport::Message& message);
  void hear_notice(const transport::Peer& peer, const transport::Message& message);
  void welcome(const actors::NodeHere& node, transport::PeerId peer,
               const transport::Message& join);
  void gone(const transport::Peer& peer, transport::Gone how, const std::string& why);
  /// Counts a bad message of a node, and logs the first one.
  void strike(std::uint64_t node, const std::string& why);
  enum class Cut { no, yes };  // Whether its connection ends as well.
  /// Removes a node, if it is there.
  void lose(std::uint64_t node, const actors::NodeLoss& loss, Cut cut = Cut::yes);
  void refuse(const transport::Peer& peer, const std::string& why);
  std::uint64_t node_of(transport::PeerId peer) const;
  std::uint64_t node_with(std::int64_t life) const;
  bool is_of(std::uint64_t node, const std::string& key) const;
  static Result<std::string> name_for(const transport::Peer& peer, const actors::Join& join);
  actors::Evidence& evidence_of(std::uint64_t node);
  /// Removes dead nodes (detector.h).
  void watch();
  std::vector<std::pair<std::uint64_t, std::string>> find_dead(Clock::time_point last_look);
  Status send(std::uint64_t node, const transport::Message& message);
  std::shared_ptr<transport::Conversation> conversation_with(std::uint64_t node);

  GateOptions options_;
  GateEvents events_;
  const std::uint64_t incarnation_;
  transport::ChannelThread channels_;
  actors::NodePool nodes_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Line> lines_;         // Keyed by incarnation.
  std::set<transport::PeerId> strangers_told_;  // Refused peers that are no nodes.
  std::map<std::string, actors::Evidence>
      evidence_;                                  // Keyed by incarnation, of nodes that were heard.
  std::map<std::string, NodePatience> patience_;  // Keyed by run.
  std::optional<Clock::time_point> deaf_since_;
  bool closing_ = false;

  std::latch opened_{1};  // A message may come before bind() has returned.
  std::unique_ptr<transport::ControlServer> server_;
  std::thread watch_;
};

}  // namespace troupe::apps
