#include "apps/head/node_gate.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "actors/link_probe.h"
#include "actors/nodes/node_messages.h"
#include "actors/nodes/node_stacks.h"
#include "core/printable.h"
#include "transport/wire/message_types.h"
#include "transport/wire/refusal.h"

namespace troupe::apps {
namespace {

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr auto least_deafness = std::chrono::milliseconds(50);

}  // namespace

NodeGate::NodeGate(Env& env, GateOptions options, GateEvents events)
    : env_(env),
      options_(std::move(options)),
      events_(std::move(events)),
      incarnation_(transport::new_incarnation(env)),
      nodes_([this](std::uint64_t node,
                    const transport::Message& message) { return send(node, message); },
             [this](std::uint64_t node, const std::string& why) { strike(node, why); }),
      loop_(env.make_loop({"gate"})) {}

NodeGate::~NodeGate() {
  loop_->end();
  const std::lock_guard lock(mutex_);
  for (auto& [node, line] : lines_) line.conversation->pause();
}

Result<std::unique_ptr<NodeGate>> NodeGate::open(Env& env, transport::Network& network,
                                                 GateOptions options, GateEvents events) {
  std::unique_ptr<NodeGate> gate(new NodeGate(env, std::move(options), std::move(events)));
  transport::ServerEvents heard;
  heard.message = [gate = gate.get()](const transport::Peer& peer, transport::Message message) {
    gate->heard(peer, std::move(message));
  };
  heard.gone = [gate = gate.get()](const transport::Peer& peer, transport::Gone how,
                                   const std::string& why) { gate->gone(peer, how, why); };
  heard.refused = [gate = gate.get()](const std::string& address, const std::string& why) {
    gate->events_.say(printable(address) + " was refused: " + printable(why));
  };
  auto server = network.listen(gate->options_.listening, std::move(heard), *gate->loop_);
  if (!server) return server.error();
  gate->server_ = std::move(*server);
  return gate;
}

class NodeGate::Deafness {
 public:
  explicit Deafness(NodeGate& gate) : gate_(gate), since_(gate.env_.now()) {}
  ~Deafness() {
    const auto time = gate_.env_.now() - since_;
    if (time < least_deafness) return;
    const std::lock_guard lock(gate_.mutex_);
    for (auto& [node, line] : gate_.lines_)
      if (line.evidence && line.evidence->pulses.last() <= since_)
        line.evidence->pulses.forgive(time);
  }
  Deafness(const Deafness&) = delete;
  Deafness& operator=(const Deafness&) = delete;

 private:
  NodeGate& gate_;
  const Env::Time since_;
};

void NodeGate::heard(const transport::Peer& peer, transport::Message message) {
  const Deafness deafness(*this);
  if (auto may = this->may(peer, message); !may) {
    // An honest node got its term from a head that does not share this head's secret, so it gets an
    // explanation.
    if (message.type == actors::Join::type)
      (void)answer_join(peer.id,
                        transport::to_message(actors::Rejected{
                            "term", "term " + std::to_string(message.term) + " without a proof",
                            "at most " + std::to_string(options_.term) +
                                "; start the node anew, or the head with its newest --state"}));
    return refuse(peer, may.error().text);
  }
  if (message.type == actors::Join::type) return join(peer, message);
  if (message.type == actors::ExitNotice::type) return hear_notice(peer, message);
  if (message.type == transport::Refusal::type && message.seq == 0)
    return hear_refusal(peer.id, peer.address, message);
  std::uint64_t node = 0;
  {
    const std::lock_guard lock(mutex_);
    node = node_of(peer.id);
  }
  if (node == 0) return events_.asked(peer, std::move(message));
  const auto conversation = conversation_with(node);
  if (!conversation) return;
  auto now = conversation->hear(std::move(message));
  if (!now) return refuse(peer, now.error().text);
  if (*now) heard_from_node(node, std::move(**now));
}

/// Checks a message's term and makes its text printable. Only nodes and daemons know terms. A node
/// gives its term in its Join, with the proof from the head that issued it.
Status NodeGate::may(const transport::Peer& peer, transport::Message& message) const {
  const bool is_join = message.type == actors::Join::type;
  if (message.term > options_.term) {
    const auto* proof = is_join ? message.body.find("term_proof") : nullptr;
    if (!proof || !proof->text() || !options_.seal.proves(message.term, *proof->text()))
      return Error{message.type + ": found term " + std::to_string(message.term) +
                   " without a proof, wanted at most " + std::to_string(options_.term) +
                   ", the term of this head"};
    if (!peer.roles.meets({transport::Role::node, transport::Role::daemon}))
      return Error{message.type + ": only nodes and daemons know terms"};
  }
  // Makes texts printable, since people read them. Messages of types that operators may send stay
  // as they are.
  const auto* type = transport::find_message_type(message.type);
  if (type && !type->from.has(transport::Role::operator_)) make_printable(message.body);
  return Done{};
}

void NodeGate::refuse(const transport::Peer& peer, const std::string& why) {
  std::uint64_t node = 0;
  bool is_first = true;
  {
    const std::lock_guard lock(mutex_);
    node = node_of(peer.id);
    if (node == 0) is_first = strangers_told_.insert(peer.id).second;
  }
  if (node != 0) return strike(node, why);
  if (is_first)
    events_.say(printable(peer.address) + " sent a message that it must not send: " + why +
                "; further such messages are only counted");
  (void)server_->strike(peer.id, why);
}

/// Returns the node of a connection; 0 if it is none. Requires the lock.
std::uint64_t NodeGate::node_of(transport::PeerId peer) const {
  const auto node = node_at_.find(peer);
  return node == node_at_.end() ? 0 : node->second;
}

/// Sets the connection of a node; 0 for none. Requires the lock.
void NodeGate::set_peer(std::uint64_t node, Line& line, transport::PeerId peer) {
  // Another node may use that connection by now.
  if (const auto at = node_at_.find(line.peer); at != node_at_.end() && at->second == node)
    node_at_.erase(at);
  line.peer = peer;
  if (peer != 0) node_at_[peer] = node;
}

void NodeGate::heard_from_node(std::uint64_t node, transport::Message message) {
  using Act = void (NodeGate::*)(std::uint64_t, const transport::Message&);
  static constexpr transport::Handles<Act> handlers[] = {
      {actors::Heartbeat::type, &NodeGate::beat},
      {actors::GpuReadings::type, &NodeGate::hear_gpus},
      {actors::MachineLoad::type, &NodeGate::hear_load},
      {actors::Leaving::type, &NodeGate::hear_leaving},
      {actors::NodeStacks::type, &NodeGate::hear_answer},
      {actors::NodeDoors::type, &NodeGate::hear_answer},
      {actors::NodeLinks::type, &NodeGate::hear_answer},
  };
  static_assert(transport::handles_all(
      transport::Handler::gate,
      {actors::Join::type, actors::ExitNotice::type, transport::Refusal::type, handlers[0].type,
       handlers[1].type, handlers[2].type, handlers[3].type, handlers[4].type, handlers[5].type,
       handlers[6].type}));
  if (const auto* act = transport::find_handler(handlers, message.type))
    return (this->**act)(node, message);
  if (message.type == transport::Refusal::type) {
    transport::PeerId peer = 0;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = lines_.find(node); found != lines_.end()) peer = found->second.peer;
    }
    const auto here = nodes_.find(node);
    return hear_refusal(peer, here ? here->title() : "a node", message);
  }
  constexpr transport::Handlers of_runs = {transport::Handler::attempt, transport::Handler::player};
  const auto* type = transport::find_message_type(message.type);
  if (type && type->handlers.meets(of_runs)) return events_.about_run(node, std::move(message));
  auto refusal = transport::to_message(
      transport::refusal(transport::RefusalCode::unsupported, "type",
                         "a head does not take '" + message.type + "' from a node"));
  refusal.re = message.id;
  (void)send(node, refusal);
  strike(node, message.type + ": a node may not send this");
}

void NodeGate::hear_answer(std::uint64_t node, const transport::Message& message) {
  events_.answered(node, message);
}

void NodeGate::hear_leaving(std::uint64_t node, const transport::Message& message) {
  const auto here = nodes_.find(node);
  const auto leaving = transport::from_message<actors::Leaving>(message);
  if (!leaving) return strike(node, leaving.error().text);
  if (!here) return;
  nodes_.cordon(here->name, true);
  events_.leaving(*here, leaving->reason);
}

/// Tells a person that a peer has refused a message of this head. Each refusal is a strike, so that
/// no peer can fill the log.
void NodeGate::hear_refusal(transport::PeerId peer, const std::string& who,
                            const transport::Message& message) {
  const auto refusal = transport::from_message<transport::Refusal>(message);
  events_.say(printable(who) + " refused a message of this head: " +
              printable(refusal ? refusal->text : refusal.error().text));
  if (peer != 0) (void)server_->strike(peer, "it refuses messages of this head");
}

void NodeGate::hear_gpus(std::uint64_t node, const transport::Message& message) {
  const auto here = nodes_.find(node);
  const auto told = transport::from_message<actors::GpuReadings>(message);
  if (!told) return strike(node, told.error().text);
  if (!here) return;
  nodes_.set_gpus(node, told->gpus, env_.now());
  events_.gpus(*here, told->gpus);
}

void NodeGate::hear_load(std::uint64_t node, const transport::Message& message) {
  const auto told = transport::from_message<actors::MachineLoad>(message);
  if (!told) return strike(node, told.error().text);
  // A comparison with NaN is false.
  if (told->busy && !(*told->busy >= 0 && *told->busy <= 1))
    return strike(node, "node.load.busy: wanted a share from 0 to 1");
  nodes_.set_load(node, *told, env_.now());
}

void NodeGate::join(const transport::Peer& peer, const transport::Message& message) {
  auto join = transport::from_message<actors::Join>(message);
  const auto reject = [&](const std::string& reason, const std::string& found,
                          const std::string& wanted) {
    events_.say("a node was rejected: " + reason + ": found " + found + ", wanted " + wanted);
    (void)answer_join(peer.id, transport::to_message(actors::Rejected{reason, found, wanted}));
  };
  if (!join) return reject("its message", join.error().text, "one of this version");
  if (join->inventory.version != TROUPE_VERSION)
    return reject("version", "troupe " + join->inventory.version,
                  "troupe " TROUPE_VERSION ", as the head is");
  // The term was proved in may().
  if (message.term > options_.term) return events_.deposed(message.term);
  const auto name = name_for(peer, *join);
  if (!name) return reject("name", name.error().text, "1 to 64 of A-Z a-z 0-9 . _ -");
  const auto node = message.incarnation;
  if (node == 0) return reject("its message", "no incarnation", "one of this version");
  if (const auto known = nodes_.find(node)) {
    if (is_of(node, peer.key)) return welcome(*known, peer.id, message);
    return reject("key", "another key than that of node " + known->name, "its own");
  }
  if (join->again)
    return (void)answer_join(
        peer.id, transport::to_message(actors::Retire{
                     "the head restarted or dropped this node, and goes on without it"}));
  std::vector<std::uint64_t> before;
  {
    const std::lock_guard lock(mutex_);
    before = find_replaced(*name, peer, join->inventory.host);
  }
  for (const auto other : before) lose(other, {.why = "another process took its place"}, Cut::no);
  {
    // Before adding it to the pool, since waiting runs then send to it at once.
    const std::lock_guard lock(mutex_);
    auto& line =
        lines_[node] = {.conversation = std::make_shared<transport::Conversation>(incarnation_),
                        .wanted = *name,
                        .key = peer.key,
                        .host = join->inventory.host,
                        .life = join->life};
    set_peer(node, line, peer.id);
    by_wanted_.emplace(*name, node);
    if (join->life != 0) by_life_.emplace(join->life, node);
  }
  const auto here = nodes_.add(node, *name, std::move(join->inventory), peer.key, env_.now());
  welcome(here, peer.id, message);
  events_.joined(here);
}

/// Returns the nodes whose place a new one takes: those that had its connection, and those of its
/// name, host and key without a connection, which have died. A process is one node. Requires the
/// lock.
std::vector<std::uint64_t> NodeGate::find_replaced(const std::string& name,
                                                   const transport::Peer& peer,
                                                   const std::string& host) const {
  std::vector<std::uint64_t> replaced;
  if (const auto node = node_of(peer.id); node != 0) replaced.push_back(node);
  for (auto [at, end] = by_wanted_.equal_range(name); at != end; ++at) {
    const auto& line = lines_.at(at->second);
    if (line.peer == 0 && line.key == peer.key && line.host == host) replaced.push_back(at->second);
  }
  return replaced;
}

/// Returns the node's name. A key may use the name of its host and names that begin with it;
/// another name gets the host's name as prefix.
Result<std::string> NodeGate::name_for(const transport::Peer& peer, const actors::Join& join) {
  std::string name = !join.name.empty()  ? join.name
                     : peer.host.empty() ? join.inventory.host
                                         : peer.host;
  const auto is_its_own = [&] {
    if (!name.starts_with(peer.host)) return false;
    const auto rest = std::string_view(name).substr(peer.host.size());
    return rest.empty() || rest.front() == '-' || rest.front() == '.' || rest.front() == '_';
  };
  if (!peer.host.empty() && !is_its_own()) name = peer.host + "." + name;
  if (!transport::is_host_name(name)) return Error{"'" + printable(name) + "'"};
  return name;
}

bool NodeGate::is_of(std::uint64_t node, const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(node);
  return line == lines_.end() || line->second.key == key;
}

void NodeGate::welcome(const actors::NodeHere& node, transport::PeerId peer,
                       const transport::Message& join) {
  std::shared_ptr<transport::Conversation> conversation;
  transport::PeerId before = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(node.incarnation);
    if (found == lines_.end()) return;  // The node was just lost. It will learn that when it dials.
    before = found->second.peer;
    set_peer(node.incarnation, found->second, peer);
    conversation = found->second.conversation;
    // The detector judges the node from now on, even if it never sends a heartbeat.
    auto& evidence = evidence_of(found->second);
    evidence.closed.reset();
    evidence.pulses.forgive(env_.now() - evidence.pulses.last());
  }
  if (before != 0 && before != peer)
    (void)server_->cut(before, "it connected again over another connection");
  auto welcome = transport::to_message(actors::Welcome{node.name, term_proof()});
  welcome.ack = conversation->ack();
  if (!answer_join(peer, std::move(welcome))) return;
  auto resumed = conversation->resume(
      join.incarnation, join.ack,
      [this, peer](const transport::Message& message) -> Status { return answer(peer, message); });
  if (!resumed) return strike(node.incarnation, resumed.error().text);
  nodes_.set_away(node.incarnation, false);
}

void NodeGate::gone(const transport::Peer& peer, transport::Gone how, const std::string& why) {
  std::uint64_t struck_off = 0;
  {
    const std::lock_guard lock(mutex_);
    strangers_told_.erase(peer.id);
    const auto found = lines_.find(node_of(peer.id));
    if (found == lines_.end()) return;
    if (how == transport::Gone::struck_off) struck_off = found->first;
    auto& line = found->second;
    line.conversation->pause();
    set_peer(found->first, line, 0);
    evidence_of(line).closed = env_.now();
    nodes_.set_away(found->first, true);
  }
  // Many nodes may go at once.
  if (!looks_soon_.exchange(true))
    loop_->post([this] {
      looks_soon_ = false;
      look();
    });
  if (struck_off != 0) lose(struck_off, {.why = why});
}

void NodeGate::strike(std::uint64_t node, const std::string& why) {
  transport::PeerId peer = 0;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(node);
    if (found == lines_.end()) return;
    is_first = ++found->second.refused == 1;
    peer = found->second.peer;
  }
  const auto here = nodes_.find(node);
  if (is_first && here)
    events_.say(here->title() + " sent a message that it must not send: " + why +
                "; further such messages are only counted");
  if (peer != 0) (void)server_->strike(peer, why);
}

void NodeGate::lose(std::uint64_t node, const actors::NodeLoss& loss, Cut cut) {
  transport::PeerId peer = 0;
  {
    const std::lock_guard lock(mutex_);
    auto line = lines_.extract(node);
    if (line.empty()) return;
    line.mapped().conversation->pause();
    peer = line.mapped().peer;
    set_peer(node, line.mapped(), 0);
    const auto is_it = [node](const auto& entry) { return entry.second == node; };
    const auto [at, end] = by_wanted_.equal_range(line.mapped().wanted);
    by_wanted_.erase(std::find_if(at, end, is_it));
    if (const auto life = by_life_.find(line.mapped().life); life != by_life_.end() && is_it(*life))
      by_life_.erase(life);
  }
  if (peer != 0 && cut == Cut::yes) (void)server_->cut(peer, loss.why);
  if (const auto here = nodes_.remove(node)) events_.lost(*here, loss);
}

/// Handles a notice that a process has ended. It must contain the secret of that process and come
/// with its key. A notice that matches no node may be late, and is ignored.
void NodeGate::hear_notice(const transport::Peer& peer, const transport::Message& message) {
  const auto notice = transport::from_message<actors::ExitNotice>(message);
  if (!notice) return refuse(peer, notice.error().text);
  if (const auto node = node_with(notice->life); node != 0 && !is_of(node, peer.key))
    return refuse(peer, message.type + ": found a process that was started by another key");
  process_ended(*notice);
}

void NodeGate::process_ended(const actors::ExitNotice& notice) {
  auto why = "its process " + notice.how;
  if (!notice.last_words.empty()) why += "; last log lines: " + notice.last_words;
  if (const auto node = node_with(notice.life); node != 0)
    lose(node, {.why = why, .has_ended = true, .signal = notice.signal});
}

/// Returns the node with this secret; 0 if there is none.
std::uint64_t NodeGate::node_with(std::int64_t life) const {
  const std::lock_guard lock(mutex_);
  const auto node = by_life_.find(life);
  return node == by_life_.end() ? 0 : node->second;
}

void NodeGate::beat(std::uint64_t node, const transport::Message&) {
  const std::lock_guard lock(mutex_);
  const auto line = lines_.find(node);
  if (line == lines_.end()) return;
  evidence_of(line->second).pulses.heard(env_.now());
  if (line->second.peer != 0) nodes_.set_away(node, false);
}

/// Returns the evidence about a node. Requires the lock.
actors::Evidence& NodeGate::evidence_of(Line& line) {
  if (line.evidence) return *line.evidence;
  line.evidence.emplace(actors::Evidence{actors::Pulses(env_.now()), {}, {}, 0});
  if (!std::exchange(looks_, true)) {
    last_look_ = env_.now();
    look_later();
  }
  return *line.evidence;
}

void NodeGate::look_later() {
  loop_->after(look_every, [this] {
    look();
    const std::lock_guard lock(mutex_);
    looks_ = !lines_.empty();
    if (looks_) look_later();
  });
}

void NodeGate::look() {
  std::vector<std::pair<std::uint64_t, std::string>> dead;
  {
    const std::lock_guard lock(mutex_);
    dead = find_dead();
    last_look_ = env_.now();
  }
  for (const auto& [node, why] : dead) lose(node, {.why = why});
}

/// Returns the dead nodes and the reasons. Requires the lock.
std::vector<std::pair<std::uint64_t, std::string>> NodeGate::find_dead() {
  std::vector<std::pair<std::uint64_t, std::string>> dead;
  const auto now = env_.now();
  actors::DetectorLimits limits;
  auto patience = patience_.empty() ? options_.patience : patience_.begin()->second;
  for (const auto& [_, asked] : patience_) {
    patience.silence_floor = std::max(patience.silence_floor, asked.silence_floor);
    patience.reconnect = std::max(patience.reconnect, asked.reconnect);
  }
  limits.silence_floor = patience.silence_floor;
  limits.reconnect_patience = patience.reconnect;
  std::vector<std::uint64_t> nodes;
  std::vector<actors::Evidence*> all;
  for (auto& [node, line] : lines_) {
    if (!line.evidence) continue;
    nodes.push_back(node);
    all.push_back(&*line.evidence);
  }
  limits.nodes = static_cast<int>(all.size());
  auto found = actors::judge_all(all, last_look_, look_every, now, limits);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].is == actors::Presence::Is::dead)
      dead.emplace_back(nodes[i], std::move(found[i].reason));
  return dead;
}

void NodeGate::set_patience(const std::string& run, const NodePatience& patience) {
  const std::lock_guard lock(mutex_);
  patience_[run] = patience;
}

void NodeGate::forget_patience(const std::string& run) {
  const std::lock_guard lock(mutex_);
  patience_.erase(run);
}

Status NodeGate::send(std::uint64_t node, const transport::Message& message) {
  const auto conversation = conversation_with(node);
  if (!conversation) return Error{"it is gone"};
  return conversation->say(message);
}

Status NodeGate::answer(transport::PeerId peer, transport::Message message) {
  message.term = options_.term;
  message.incarnation = incarnation_;
  return server_->send(peer, message);
}

/// Answers a node that joins. It would wait for ever for an answer that cannot be sent, so it is
/// cut off: it dials again and joins once more.
Status NodeGate::answer_join(transport::PeerId peer, transport::Message message) {
  auto answered = answer(peer, std::move(message));
  if (!answered) (void)server_->cut(peer, answered.error().text);
  return answered;
}

std::shared_ptr<transport::Conversation> NodeGate::conversation_with(std::uint64_t node) {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(node);
  return found == lines_.end() ? nullptr : found->second.conversation;
}

}  // namespace troupe::apps
