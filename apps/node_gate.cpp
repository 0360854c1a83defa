#include "apps/node_gate.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "actors/node_messages.h"
#include "core/thread_name.h"

namespace troupe::apps {
namespace {

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr auto least_deafness = std::chrono::milliseconds(50);

std::string key_of(std::uint64_t node) { return std::to_string(node); }

}  // namespace

NodeGate::NodeGate(GateOptions options, GateEvents events)
    : options_(std::move(options)),
      events_(std::move(events)),
      incarnation_(transport::new_incarnation()),
      nodes_([this](std::uint64_t node, const transport::Message& message) {
        return send(node, message);
      }) {}

NodeGate::~NodeGate() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
  const std::lock_guard lock(mutex_);
  for (auto& [node, line] : lines_) line.conversation->pause();
}

Result<std::unique_ptr<NodeGate>> NodeGate::open(GateOptions options, GateEvents events) {
  std::unique_ptr<NodeGate> gate(new NodeGate(std::move(options), std::move(events)));
  transport::ServerEvents heard;
  heard.message = [gate = gate.get()](const transport::Peer& peer, transport::Message message) {
    gate->heard(peer, std::move(message));
  };
  heard.gone = [gate = gate.get()](const transport::Peer& peer, transport::Gone,
                                   const std::string&) { gate->gone(peer); };
  heard.refused = [gate = gate.get()](const std::string& address, const std::string& why) {
    gate->events_.say(address + " was refused: " + why);
  };
  auto server = transport::ControlServer::bind(gate->options_.listening, std::move(heard));
  if (!server) return server.error();
  gate->server_ = std::move(*server);
  gate->opened_.count_down();
  gate->watch_ = std::thread([gate = gate.get()] { gate->watch(); });
  return gate;
}

class NodeGate::Deafness {
 public:
  explicit Deafness(NodeGate& gate) : gate_(gate), since_(Clock::now()) {
    const std::lock_guard lock(gate_.mutex_);
    gate_.deaf_since_ = since_;
  }
  ~Deafness() {
    const std::lock_guard lock(gate_.mutex_);
    gate_.deaf_since_.reset();
    const auto time = Clock::now() - since_;
    if (time < least_deafness) return;
    for (auto& [node, evidence] : gate_.evidence_)
      if (evidence.pulses.last() <= since_) evidence.pulses.forgive(time);
  }
  Deafness(const Deafness&) = delete;
  Deafness& operator=(const Deafness&) = delete;

 private:
  NodeGate& gate_;
  const Clock::time_point since_;
};

void NodeGate::heard(const transport::Peer& peer, transport::Message message) {
  opened_.wait();
  const Deafness deafness(*this);
  if (message.term > options_.term) events_.deposed(message.term);
  if (message.type == actors::Join::type) return join(peer, message);
  if (message.type == actors::ExitNotice::type) {
    const auto notice = transport::from_message<actors::ExitNotice>(message);
    return notice ? process_ended(*notice) : events_.say(notice.error().text);
  }
  std::uint64_t node = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto line =
        std::ranges::find(lines_, peer.id, [](const auto& entry) { return entry.second.peer; });
    if (line != lines_.end()) node = line->first;
  }
  if (node == 0) return events_.asked(peer, std::move(message));
  const auto conversation = conversation_with(node);
  if (!conversation) return;
  auto now = conversation->hear(std::move(message));
  if (!now) return (void)server_->strike(peer.id, now.error().text);
  for (auto& one : *now) heard_from_node(node, std::move(one));
}

void NodeGate::heard_from_node(std::uint64_t node, transport::Message message) {
  if (message.type == actors::Heartbeat::type) return beat(node);
  if (message.type == actors::GpuReadings::type) return hear_gpus(node, message);
  if (message.type == actors::Leaving::type) {
    const auto here = nodes_.find(node);
    const auto leaving = transport::from_message<actors::Leaving>(message);
    if (!here || !leaving) return;
    nodes_.cordon(here->name, true);
    return events_.leaving(*here, leaving->reason);
  }
  events_.about_run(node, std::move(message));
}

void NodeGate::hear_gpus(std::uint64_t node, const transport::Message& message) {
  const auto here = nodes_.find(node);
  const auto told = transport::from_message<actors::GpuReadings>(message);
  if (!here || !told) return;
  nodes_.set_gpus(node, told->gpus, Clock::now());
  events_.gpus(*here, told->gpus);
}

void NodeGate::join(const transport::Peer& peer, const transport::Message& message) {
  auto join = transport::from_message<actors::Join>(message);
  const auto reject = [&](const std::string& reason, const std::string& found,
                          const std::string& wanted) {
    events_.say("a node was rejected: " + reason + ": found " + found + ", wanted " + wanted);
    (void)answer(peer.id, transport::to_message(actors::Rejected{reason, found, wanted}));
  };
  if (!join) return reject("its message", join.error().text, "one of this version");
  if (join->inventory.version != TROUPE_VERSION)
    return reject("version", "troupe " + join->inventory.version,
                  "troupe " TROUPE_VERSION ", as the head is");
  const auto node = message.incarnation;
  if (const auto known = nodes_.find(node)) return welcome(*known, peer.id, message);
  if (join->again)
    return (void)answer(
        peer.id, transport::to_message(
                     actors::Retire{"the head does not know it any more, and goes on without it"}));
  // What had its name, has no connection and was on its host has died.
  std::optional<std::uint64_t> before;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, line] : lines_) {
      const auto here = nodes_.find(other);
      if (line.peer == 0 && line.wanted == join->name && here &&
          here->inventory.host == join->inventory.host)
        before = other;
    }
  }
  if (before) lose(*before, "another process has taken its place");
  {
    // First: whoever waits for nodes speaks to one as soon as it is in the pool.
    const std::lock_guard lock(mutex_);
    lines_[node] = {std::make_shared<transport::Conversation>(incarnation_), join->name, peer.id};
  }
  const auto here = nodes_.add(node, join->name, std::move(join->inventory));
  welcome(here, peer.id, message);
  events_.joined(here);
}

void NodeGate::welcome(const actors::NodeHere& node, transport::PeerId peer,
                       const transport::Message& join) {
  std::shared_ptr<transport::Conversation> conversation;
  transport::PeerId before = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(node.incarnation);
    if (found == lines_.end()) return;  // It was lost just now; it will hear of it when it dials.
    before = std::exchange(found->second.peer, peer);
    conversation = found->second.conversation;
    // From now on it is judged, even if it never says that it lives.
    auto& evidence = evidence_of(node.incarnation);
    evidence.closed.reset();
    evidence.pulses.forgive(Clock::now() - evidence.pulses.last());
  }
  if (before != 0 && before != peer)
    (void)server_->cut(before, "it has come by another connection");
  auto welcome = transport::to_message(actors::Welcome{node.name});
  welcome.ack = conversation->ack();
  (void)answer(peer, std::move(welcome));
  auto resumed = conversation->resume(
      join.incarnation, join.ack,
      [this, peer](const transport::Message& message) -> Status { return answer(peer, message); });
  if (!resumed) return (void)server_->strike(peer, resumed.error().text);
  nodes_.set_away(node.incarnation, false);
}

void NodeGate::gone(const transport::Peer& peer) {
  opened_.wait();
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find(lines_, peer.id, [](const auto& entry) { return entry.second.peer; });
    if (found == lines_.end()) return;
    auto& line = found->second;
    line.conversation->pause();
    line.peer = 0;
    evidence_of(found->first).closed = Clock::now();
    nodes_.set_away(found->first, true);
  }
  changed_.notify_all();
}

void NodeGate::lose(std::uint64_t node, const std::string& why) {
  transport::PeerId peer = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto line = lines_.extract(node);
    if (line.empty()) return;
    evidence_.erase(key_of(node));
    line.mapped().conversation->pause();
    peer = line.mapped().peer;
  }
  if (peer != 0) (void)server_->cut(peer, why);
  if (const auto here = nodes_.remove(node)) events_.lost(*here, why);
}

void NodeGate::process_ended(const actors::ExitNotice& notice) {
  auto why = "its process " + notice.how;
  if (!notice.last_words.empty()) why += "; it said last: " + notice.last_words;
  for (const auto& node : nodes_.all())
    if (node.inventory.host == notice.host && node.inventory.pid == notice.pid)
      return lose(node.incarnation, why);
}

void NodeGate::beat(std::uint64_t node) {
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(node);
  if (line == lines_.end()) return;
  evidence_of(node).pulses.heard(Clock::now());
  if (line->second.peer != 0) nodes_.set_away(node, false);
}

/// With the lock held.
actors::Evidence& NodeGate::evidence_of(std::uint64_t node) {
  const auto [found, is_new] = evidence_.try_emplace(
      key_of(node), actors::Evidence{actors::Pulses(Clock::now()), {}, {}, 0});
  if (is_new) changed_.notify_all();
  return found->second;
}

void NodeGate::watch() {
  name_thread("gate");
  std::unique_lock lock(mutex_);
  auto last_look = Clock::now();
  while (!closing_) {
    if (evidence_.empty()) {
      changed_.wait(lock);
      last_look = Clock::now();
    }
    changed_.wait_for(lock, look_every);
    const auto dead = find_dead(last_look);
    last_look = Clock::now();
    for (const auto& [node, why] : dead) {
      lock.unlock();
      lose(node, why);
      lock.lock();
    }
  }
}

/// With the lock held.
std::vector<std::pair<std::uint64_t, std::string>> NodeGate::find_dead(
    Clock::time_point last_look) {
  std::vector<std::pair<std::uint64_t, std::string>> dead;
  const auto now = Clock::now();
  if (deaf_since_ && now - *deaf_since_ >= least_deafness) return dead;
  actors::DetectorLimits limits;
  limits.reconnect_patience = options_.reconnect_patience;
  limits.nodes = static_cast<int>(evidence_.size());
  const auto found = actors::judge_all(evidence_, last_look, look_every, now, limits);
  for (const auto& [node, line] : lines_)
    if (const auto known = found.find(key_of(node));
        known != found.end() && known->second.is == actors::Presence::Is::dead)
      dead.emplace_back(node, known->second.reason);
  return dead;
}

Status NodeGate::send(std::uint64_t node, const transport::Message& message) {
  const auto conversation = conversation_with(node);
  if (!conversation) return Error{"it is not there any more"};
  return conversation->say(message);
}

Status NodeGate::answer(transport::PeerId peer, transport::Message message) {
  message.term = options_.term;
  message.incarnation = incarnation_;
  return server_->send(peer, message);
}

std::shared_ptr<transport::Conversation> NodeGate::conversation_with(std::uint64_t node) {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(node);
  return found == lines_.end() ? nullptr : found->second.conversation;
}

}  // namespace troupe::apps
