#pragma once

#include <chrono>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/nodes/node_pool.h"
#include "core/result.h"
#include "core/threads/worker.h"
#include "transport/channels/channel_thread.h"
#include "transport/control/control_socket.h"
#include "transport/control/conversation.h"
#include "transport/control/term_seal.h"

namespace troupe::apps {

/// How long nodes may be silent.
struct NodePatience {
  std::chrono::nanoseconds silence_floor = std::chrono::milliseconds(300);
  /// For a node whose connection has ended, though nobody says that its process has.
  std::chrono::nanoseconds reconnect = std::chrono::seconds(1);
};

struct GateOptions {
  transport::ServerOptions listening;
  std::uint64_t term = 1;    // Of this head.
  transport::TermSeal seal;  // By which heads prove their terms to each other.
  NodePatience patience;     // While no run asks for another.
};

/// What happens at a gate; must not wait. A node is named by its incarnation.
struct GateEvents {
  std::function<void(const actors::NodeHere&)> joined = [](const actors::NodeHere&) {};
  std::function<void(const actors::NodeHere&, const actors::NodeLoss&)> lost;
  /// It wants to go, and gets nothing new any more.
  std::function<void(const actors::NodeHere&, const std::string& why)> leaving;
  /// It has told how its GPUs are.
  std::function<void(const actors::NodeHere&, const std::vector<actors::GpuReading>&)> gpus =
      [](const actors::NodeHere&, const std::vector<actors::GpuReading>&) {};
  /// Of a run, from a node.
  std::function<void(std::uint64_t node, transport::Message)> about_run;
  /// All else.
  std::function<void(const transport::Peer&, transport::Message)> asked = [](const transport::Peer&,
                                                                             transport::Message) {};
  /// A node has proved that it knows a head which came after this one.
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
  /// A run is under way, or none of that name any more. Of several runs the most patient counts.
  void set_patience(const std::string& run, const NodePatience& patience);
  void forget_patience(const std::string& run);
  /// To one who has asked.
  Status answer(transport::PeerId peer, transport::Message message);
  /// A process that was started here is no more, and need not be waited for.
  void process_ended(const actors::ExitNotice& notice);
  /// Who may dial from now on. Sessions of others end.
  Status allow(transport::AllowList allowed) { return server_->allow(std::move(allowed)); }
  std::string term_proof() const { return options_.seal.prove(options_.term); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A node, with or without a connection.
  struct Line {
    std::shared_ptr<transport::Conversation> conversation = {};
    std::string wanted = {};     // Its name, as it wants it.
    transport::PeerId peer = 0;  // 0: its connection has ended.
    std::string key = {};        // Empty for a plain connection.
    std::int64_t life = 0;       // As its Join had it.
    std::uint64_t refused = 0;   // Messages that it must not send.
  };

  /// While a message is acted on nobody else is heard, which is no silence of theirs.
  class Deafness;

  NodeGate(GateOptions options, GateEvents events);
  void heard(const transport::Peer& peer, transport::Message message);
  void heard_from_node(std::uint64_t node, transport::Message message);
  void hear_gpus(std::uint64_t node, const transport::Message& message);
  /// Whether the message may be acted on at all: its term, and the shape of its text.
  Status may(const transport::Peer& peer, transport::Message& message) const;
  void join(const transport::Peer& peer, const transport::Message& message);
  void hear_notice(const transport::Peer& peer, const transport::Message& message);
  void welcome(const actors::NodeHere& node, transport::PeerId peer,
               const transport::Message& join);
  void gone(const transport::Peer& peer, transport::Gone how, const std::string& why);
  /// The node said what it must not say. Tells it once; then the messages are only counted.
  void strike(std::uint64_t node, const std::string& why);
  enum class Cut { no, yes };  // Whether its connection ends as well.
  /// Where it is there.
  void lose(std::uint64_t node, const actors::NodeLoss& loss, Cut cut = Cut::yes);
  void refuse(const transport::Peer& peer, const std::string& why);
  std::uint64_t node_of(transport::PeerId peer) const;
  std::uint64_t node_with(std::int64_t life) const;
  bool is_of(std::uint64_t node, const std::string& key) const;
  static Result<std::string> name_for(const transport::Peer& peer, const actors::Join& join);
  void beat(std::uint64_t node);
  actors::Evidence& evidence_of(std::uint64_t node);
  /// Loses those who are dead, as detector.h judges.
  void look();
  /// Looks again and again while there is evidence about anybody.
  void look_later();
  std::vector<std::pair<std::uint64_t, std::string>> find_dead();
  Status send(std::uint64_t node, const transport::Message& message);
  std::shared_ptr<transport::Conversation> conversation_with(std::uint64_t node);

  GateOptions options_;
  GateEvents events_;
  const std::uint64_t incarnation_;
  transport::ChannelThread channels_;
  actors::NodePool nodes_;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Line> lines_;               // By incarnation.
  std::set<transport::PeerId> strangers_told_;        // Who are no nodes, and were refused.
  std::map<std::string, actors::Evidence> evidence_;  // Likewise, of those who have been heard.
  std::map<std::string, NodePatience> patience_;      // By run.
  std::optional<Clock::time_point> deaf_since_;
  bool looks_ = false;  // Again and again.
  Clock::time_point last_look_ = Clock::now();

  std::latch opened_{1};  // Somebody may be heard before bind() has returned.
  std::unique_ptr<transport::ControlServer> server_;
  Worker watch_{"gate"};  // Last: its thread uses the others.
};

}  // namespace troupe::apps
