#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/nodes/node_pool.h"
#include "core/env.h"
#include "core/result.h"
#include "transport/control/control_socket.h"
#include "transport/control/conversation.h"
#include "transport/control/term_seal.h"
#include "transport/network.h"

namespace troupe::apps {

/// How long nodes may be silent before they count as lost.
struct NodePatience {
  std::chrono::nanoseconds silence_floor = std::chrono::milliseconds(300);
  /// The limit for a node whose connection has ended, while nobody has reported the end of its
  /// process.
  std::chrono::nanoseconds reconnect = std::chrono::seconds(1);
};

struct GateOptions {
  transport::ServerOptions listening;
  std::uint64_t term = 1;    // The term of this head.
  transport::TermSeal seal;  // The secret by which heads prove terms to each other.
  NodePatience patience;     // The patience while no run sets another.
};

/// Callbacks of a gate. They must not block. A node is identified by its incarnation.
struct GateEvents {
  std::function<void(const actors::NodeHere&)> joined = [](const actors::NodeHere&) {};
  std::function<void(const actors::NodeHere&, const actors::NodeLoss&)> lost;
  /// The node wants to leave and gets no new work.
  std::function<void(const actors::NodeHere&, const std::string& why)> leaving;
  /// The node has reported its GPUs.
  std::function<void(const actors::NodeHere&, const std::vector<actors::GpuReading>&)> gpus =
      [](const actors::NodeHere&, const std::vector<actors::GpuReading>&) {};
  /// The node has answered a question of the head.
  std::function<void(std::uint64_t node, transport::Message)> answered = [](std::uint64_t,
                                                                            transport::Message) {};
  /// A message of a node to one of its runs.
  std::function<void(std::uint64_t node, transport::Message)> about_run;
  /// Any other message.
  std::function<void(const transport::Peer&, transport::Message)> asked = [](const transport::Peer&,
                                                                             transport::Message) {};
  /// A node has proved that a newer head exists.
  std::function<void(std::uint64_t term)> deposed = [](std::uint64_t) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

/// The endpoint that nodes dial, and the connected nodes. A node whose connection breaks and
/// returns misses no message.
class NodeGate {
 public:
  /// Binds the endpoint. The environment and the network outlive the gate.
  static Result<std::unique_ptr<NodeGate>> open(Env& env, transport::Network& network,
                                                GateOptions options, GateEvents events);
  /// Stops all callbacks.
  ~NodeGate();
  NodeGate(const NodeGate&) = delete;
  NodeGate& operator=(const NodeGate&) = delete;

  /// Begins to hear those who dial, and to call the callbacks. Called once.
  void start() { server_->start(); }

  const std::string& endpoint() const { return server_->endpoint(); }
  actors::NodePool& nodes() { return nodes_; }
  /// Sets the patience of a run until forget_patience(). Among several runs the most patient
  /// counts.
  void set_patience(const std::string& run, const NodePatience& patience);
  void forget_patience(const std::string& run);
  /// Sends an answer to a peer that asked.
  Status answer(transport::PeerId peer, transport::Message message);
  /// Reports that a process started here has ended, so that the gate does not wait for it.
  void process_ended(const actors::ExitNotice& notice);
  /// Replaces the list of keys that may dial. Ends sessions of other keys.
  Status allow(transport::AllowList allowed) { return server_->allow(std::move(allowed)); }
  std::string term_proof() const { return options_.seal.prove(options_.term); }

 private:
  /// A node, with or without a connection.
  struct Line {
    std::shared_ptr<transport::Conversation> conversation = {};
    std::string wanted = {};     // The name that the node asked for.
    transport::PeerId peer = 0;  // 0: it has no connection.
    std::string key = {};        // Empty for a plain connection.
    std::string host = {};       // As in its inventory.
    std::int64_t life = 0;       // The secret from its Join.
    std::uint64_t refused = 0;   // The number of forbidden messages that it sent.
    std::optional<actors::Evidence> evidence = {};  // From its welcome on.
  };

  /// A guard for the handling of a message. The gate hears no heartbeats meanwhile, which must not
  /// count as silence of other nodes.
  class Deafness;

  NodeGate(Env& env, GateOptions options, GateEvents events);
  void heard(const transport::Peer& peer, transport::Message message);
  void heard_from_node(std::uint64_t node, transport::Message message);
  void beat(std::uint64_t node, const transport::Message& message);
  void hear_gpus(std::uint64_t node, const transport::Message& message);
  void hear_load(std::uint64_t node, const transport::Message& message);
  Status answer_join(transport::PeerId peer, transport::Message message);
  void hear_answer(std::uint64_t node, const transport::Message& message);
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
  /// Counts a forbidden message of the node. Reports the first one to the node.
  void strike(std::uint64_t node, const std::string& why);
  enum class Cut { no, yes };  // Whether to close the node's connection too.
  /// Removes the node if it is present.
  void lose(std::uint64_t node, const actors::NodeLoss& loss, Cut cut = Cut::yes);
  void refuse(const transport::Peer& peer, const std::string& why);
  std::uint64_t node_of(transport::PeerId peer) const;
  std::uint64_t node_with(std::int64_t life) const;
  bool is_of(std::uint64_t node, const std::string& key) const;
  static Result<std::string> name_for(const transport::Peer& peer, const actors::Join& join);
  actors::Evidence& evidence_of(Line& line);
  void set_peer(std::uint64_t node, Line& line, transport::PeerId peer);
  std::vector<std::uint64_t> find_replaced(const std::string& name, const transport::Peer& peer,
                                           const std::string& host) const;
  /// Loses the nodes that the detector (detector.h) declares dead.
  void look();
  /// Looks periodically while there is evidence about any node.
  void look_later();
  std::vector<std::pair<std::uint64_t, std::string>> find_dead();
  Status send(std::uint64_t node, const transport::Message& message);
  std::shared_ptr<transport::Conversation> conversation_with(std::uint64_t node);

  Env& env_;
  GateOptions options_;
  GateEvents events_;
  const std::uint64_t incarnation_;
  actors::NodePool nodes_;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Line> lines_;                           // Keyed by incarnation.
  std::unordered_map<transport::PeerId, std::uint64_t> node_at_;  // Nodes with a connection.
  std::multimap<std::string, std::uint64_t> by_wanted_;           // Keyed by wanted name.
  std::unordered_map<std::int64_t, std::uint64_t> by_life_;       // Keyed by Join::life.
  std::set<transport::PeerId> strangers_told_;    // Refused peers that are not nodes.
  std::map<std::string, NodePatience> patience_;  // Keyed by run.
  bool looks_ = false;                            // Again and again.
  std::atomic<bool> looks_soon_ = false;
  Env::Time last_look_ = env_.now();

  std::unique_ptr<Loop> loop_;                        // Outlives the server.
  std::unique_ptr<transport::ControlServer> server_;  // Its callbacks are tasks of the loop.
};

}  // namespace troupe::apps
