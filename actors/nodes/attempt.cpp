#include "actors/nodes/attempt.h"

#include <algorithm>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/nodes/node_attempt.h"
#include "actors/play/recovery_points.h"

namespace troupe::actors {
namespace {

// A process keeps two states of each optimizer; under an earlier plan it may have kept others.
constexpr std::size_t most_steps_kept = 256;

}  // namespace

Attempt::Attempt(Context around, const AttemptContext& attempt_context, int number, Origin origin)
    : around_(std::move(around)),
      spec_(attempt_context.spec),
      bounds_(RunBounds::of(*spec_)),
      supervisor_(caf::actor_cast<caf::weak_actor_ptr>(attempt_context.supervisor)),
      number_(number),
      origin_(std::move(origin)) {}

void Blame::set(Placement placement, std::vector<NodeHere> nodes) {
  const std::lock_guard lock(mutex_);
  placement_ = std::move(placement);
  nodes_ = std::move(nodes);
}

void Blame::clear() { set({}, {}); }

std::optional<NodeHere> Blame::of(PlayerId player) const {
  const std::lock_guard lock(mutex_);
  if (nodes_.empty()) return {};
  const auto process = static_cast<std::size_t>(placement_.process_of(player));
  return process < nodes_.size() ? std::optional(nodes_[process]) : std::nullopt;
}

void Attempt::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  for (const auto& node : used_) (void)say(node, transport::to_message(Stop{}));
}

// The functions below are called in sequence.

Status Attempt::prepare(const Lineup& lineup, const Value& config) {
  const auto& placement = lineup.placement;
  const auto processes = static_cast<std::size_t>(placement.processes);
  tokens_.assign(processes, std::vector<std::int64_t>(processes));
  for (auto& to : tokens_)
    for (auto& token : to) token = static_cast<std::int64_t>(around_.env.random() >> 1);
  {
    const std::lock_guard lock(mutex_);
    placement_ = placement;
    used_ = lineup.nodes;
    addresses_.resize(processes);
  }
  blame_->set(placement, lineup.nodes);
  const auto head = static_cast<std::size_t>(placement.head());
  const auto shared = protection(lineup);
  auto mesh = Mesh::open(
      around_.network,
      {.epoch = epoch_of(around_.run, static_cast<std::uint64_t>(number_)),
       .here = placement.head(),
       .processes = placement.processes,
       .tokens = {tokens_[head].begin(), tokens_[head].end()},
       .bound = bound_of(*spec_),
       .memory = &around_.memory,
       .interface = around_.interface,
       .carriers = around_.carriers,
       .linked = {},
       .protection = shared,
       .on_wire_message =
           [this](int from, PlayerId to, WireMessage wire_message) {
             if (auto taken = take_from(from, to, std::move(wire_message)); !taken)
               refuse(from, taken.error().text);
           },
       .on_lost =
           [this](int process, const std::string& why) {
             doubt(process);
             end_process(process,
                         {"the channel to " + name_of(process) + ": " + why, EndCause::lost});
           }});
  if (!mesh) return mesh.error();
  mesh_ = std::move(*mesh);
  {
    const std::lock_guard lock(mutex_);
    addresses_[head] = mesh_->address();
  }
  for (std::size_t i = 0; i < lineup.nodes.size(); ++i) {
    const auto message =
        transport::to_message(Prepare{config, placement, static_cast<int>(i), tokens_[i],
                                      shared.peers, around_.plain == PlainTensors::anywhere});
    if (auto said = say(lineup.nodes[i], message); !said) return said;
  }
  return Done{};
}

/// Returns the keys. If the head has no keys of its own, nobody has.
MeshProtection Attempt::protection(const Lineup& lineup) const {
  MeshProtection protection{around_.plain, around_.keys, {}};
  if (!around_.keys) return protection;
  for (const auto& node : lineup.nodes) protection.peers.push_back(node.key);
  protection.peers.push_back(around_.keys->public_key);
  return protection;
}

void Attempt::load(const StateSource& source, std::function<void(Status)> loaded) {
  source_ = source;
  loaded_ = {};
  if (source.from == StateSource::From::memory) return loaded(Done{});
  const auto state = std::make_shared<Result<StartPoint>>(StartPoint());
  aside([this, state, step = source.step] { *state = origin_.load(step); },
        [this, state, loaded = std::move(loaded)] {
          if (!*state) return loaded(state->error());
          loaded_ = std::move(**state);
          loaded(Done{});
        });
}

void Attempt::start(std::function<void(Status)> started) {
  origin_.load = nullptr;  // Frees what it holds.
  if (auto told = tell_start(); !told) return started(told);
  const auto tokens = tokens_of(static_cast<std::size_t>(placement_.head()));
  mesh_->connect(addresses_, {tokens.begin(), tokens.end()}, around_.loop,
                 [weak = weak_from_this(), started = std::move(started)](const Status& connected) {
                   const auto self = weak.lock();
                   if (!self || self->is_over_) return;
                   if (!connected || self->loaded_.weights.empty()) return started(connected);
                   const auto given = std::make_shared<Status>(Done{});
                   self->aside([self = self.get(), given] { *given = self->give_state(); },
                               [given, started] { started(*given); });
                 });
}

/// Returns the tokens that a process shows to the others.
std::vector<std::int64_t> Attempt::tokens_of(std::size_t from) const {
  std::vector<std::int64_t> tokens;
  for (const auto& to : tokens_) tokens.push_back(to[from]);
  return tokens;
}

/// Tells the nodes to start.
Status Attempt::tell_start() {
  remark_on_links();
  const bool is_loaded = !loaded_.weights.empty();
  const auto optimizers = placement_.optimizers.size();
  const auto states = is_in_memory() ? source_.givers
                      : is_loaded    ? std::vector(optimizers, placement_.head())
                                     : std::vector<int>();
  if (spec_->copies > 1) {
    std::vector<std::string> machines;
    for (std::size_t i = 0; i < used_.size(); ++i) machines.push_back(addresses_[i].machine);
    keepers_ = keepers_of(placement_.optimizers, machines, spec_->copies);
  }
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const auto message =
        transport::to_message(Start{addresses_, tokens_of(i), source_.step, states, keepers_});
    if (auto said = say(used_[i], message); !said) return said;
  }
  return Done{};
}

/// Sends the loaded state to its optimizers.
Status Attempt::give_state() {
  const int optimizers =
      loaded_.weights.empty() ? 0 : static_cast<int>(placement_.optimizers.size());
  for (int i = 0; i < optimizers; ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, i};
    auto part = part_of(loaded_, *spec_, i);
    const auto wire_message = to_wire_message(Snapshot{0, i, part.step, std::move(part.weights),
                                                       std::move(part.moments), part.loss_scale},
                                              around_.memory);
    if (auto sent = mesh_->send(placement_.process_of(optimizer), optimizer, wire_message); !sent)
      return sent;
  }
  loaded_ = {};
  return Done{};
}

void Attempt::remark_on_links() {
  if (around_.plain == PlainTensors::anywhere) return;
  const MeshAddress* first = nullptr;
  for (const auto& address : addresses_) {
    if (address.links.empty()) continue;
    if (!first) first = &address;
    if (address.machine == first->machine) continue;
    return remark(
        "tensors between GPUs of several machines go by way of the hosts, encrypted: Troupe cannot "
        "encrypt what NCCL sends; if the network is all yours, start the head with "
        "--plain-tensors");
  }
}

std::vector<std::vector<std::uint64_t>> Attempt::keepers() const {
  std::vector<std::vector<std::uint64_t>> all;
  for (const auto& processes : keepers_) {
    auto& nodes = all.emplace_back();
    for (const int process : processes)
      nodes.push_back(used_[static_cast<std::size_t>(process)].incarnation);
  }
  return all;
}

void Attempt::begin(std::chrono::nanoseconds nodes, std::chrono::nanoseconds prepare,
                    std::chrono::nanoseconds load) {
  int copies = 0;
  for (const auto& keepers : keepers_) copies += static_cast<int>(keepers.size());
  caf_shim::post(supervisor_,
                 Assembled{number_, source_.step, is_in_memory(), static_cast<int>(used_.size()),
                           copies, nodes, prepare, load});
}

/// Runs work outside the loop. The attempt lives until it is done.
void Attempt::aside(Loop::Task work, Loop::Task then) {
  const auto self = shared_from_this();
  around_.loop.aside(
      "assembling", [self, work = std::move(work)] { work(); },
      [self, then = std::move(then)] {
        if (!self->is_over_) then();
      });
}

void Attempt::wait(const std::string& for_what) {
  const auto supervisor = caf::actor_cast<caf::actor>(supervisor_);
  if (!supervisor) return;
  for (const auto& [player, proxy] : proxies_)
    caf_shim::post(supervisor, Pulse{number_, player, waits("it waits for " + for_what), 0});
}

void Attempt::remark(const std::string& text) { caf_shim::post(supervisor_, Remark{text}); }

Status Attempt::carry(PlayerId to, WireMessage wire_message) {
  const std::lock_guard lock(mutex_);
  const auto process = static_cast<std::size_t>(placement_.process_of(to));
  return say(used_[process], as_message(to, std::move(wire_message)));
}

void Attempt::heard(std::uint64_t node, transport::Message message) {
  if (message.epoch != static_cast<std::uint64_t>(number_)) return;  // It is late.
  if (auto taken = take(node, std::move(message)); !taken) {
    const std::string why = taken.error().text;
    end_all_of(node, why, EndCause::failed);
    around_.nodes.strike(node, why);
  }
}

Status Attempt::take(std::uint64_t node, transport::Message message) {
  int process = -1;
  {
    const std::lock_guard lock(mutex_);
    process = process_of(node);
  }
  if (process < 0)
    return Error{message.type + ": the sender has no part in attempt " + std::to_string(number_) +
                 " of run " + around_.run};
  static_assert(transport::handles_all(
      transport::Handler::attempt,
      {Prepared::type, PrepareFailed::type, StageFailed::type, Paths::type}));
  if (message.type == Prepared::type) return prepared(process, node, message);
  if (message.type == PrepareFailed::type) {
    auto failed = transport::from_message<PrepareFailed>(message);
    if (!failed) return failed.error();
    if (auto heard = hear_lost(process, message.type, failed->lost, failed->why); !heard)
      return heard;
    end_all_of(node, failed->why, failed->cause);
    return Done{};
  }
  if (message.type == StageFailed::type) {
    auto failed = transport::from_message<StageFailed>(message);
    if (!failed) return failed.error();
    if (!has_player(placement_, failed->player) || placement_.process_of(failed->player) != process)
      return Error{message.type + ": found the end of a player that is not the sender's"};
    if (auto heard = hear_lost(process, message.type, failed->lost, failed->why); !heard)
      return heard;
    if (failed->lost) failed->why = name_of(process) + " " + failed->why;
    end(*failed);
    return Done{};
  }
  if (message.type == Paths::type) return measured(process, node, message);
  auto addressed = as_wire_message(std::move(message));
  if (!addressed) return addressed.error();
  return take_from(process, addressed->to, std::move(addressed->wire_message));
}

namespace {

/// Checks that a node reads the same sample bytes as the head, as far as digests tell.
Status same_data(const RunSpec& spec, const std::vector<DataHere>& there) {
  if (there.size() != spec.data.size())
    return Error{"it reads samples from " + std::to_string(there.size()) +
                 " files, and the head from " + std::to_string(spec.data.size()) +
                 "; use the same files on both"};
  for (std::size_t i = 0; i < there.size(); ++i) {
    const auto& wanted = spec.data[i];
    const auto digest = to_string(wanted.digest);
    if (there[i].path == wanted.path && there[i].digest == digest) continue;
    return Error{there[i].path + ": this data file differs from the head's " + wanted.path +
                 " (digest " + there[i].digest + ", wanted " + digest +
                 "); copy the head's file to that node"};
  }
  return Done{};
}

}  // namespace

/// Needs no lock: the placement is fixed before any process takes part.
Status Attempt::take_from(int process, PlayerId to, WireMessage wire_message) const {
  if (is_over_) return Done{};
  if (to != the_supervisor)
    return Error{wire_message.type + ": found it addressed to a player that is not here"};
  auto supervisor = caf::actor_cast<caf::actor>(supervisor_);
  if (!supervisor) return Done{};
  return deliver(std::move(wire_message), {process, to, placement_, bounds_}, *spec_, supervisor);
}

/// Refuses a message that came by a channel.
void Attempt::refuse(int process, const std::string& why) {
  if (is_over_) return;
  const std::string text = name_of(process) + ": " + why;
  end_process(process, {text, EndCause::failed});
  std::optional<std::uint64_t> node;
  {
    const std::lock_guard lock(mutex_);
    if (process >= 0 && static_cast<std::size_t>(process) < used_.size())
      node = used_[static_cast<std::size_t>(process)].incarnation;
  }
  if (node) around_.nodes.strike(*node, why);
}

Status Attempt::prepared(int process, std::uint64_t node, const transport::Message& message) {
  auto read = transport::from_message<Prepared>(message);
  if (!read) return read.error();
  if (auto same = same_data(*spec_, read->data); !same) {
    end_all_of(node, same.error().text, EndCause::failed);
    return Done{};
  }
  if (read->address.tcp.empty()) return Error{message.type + ": found no address"};
  if (read->kept.size() > most_steps_kept)
    return Error{message.type + ": found " + std::to_string(read->kept.size()) +
                 " steps that are kept, wanted at most " + std::to_string(most_steps_kept)};
  for (const auto& link : read->address.links) {
    const PlayerId device{PlayerId::Kind::stage, link.device};
    if (!has_player(placement_, device) || placement_.process_of(device) != process)
      return Error{message.type + ": found a link of device " + std::to_string(link.device) +
                   ", which is not there"};
  }
  for (const auto& kept : read->kept)
    if (kept.optimizers.size() > placement_.optimizers.size())
      return Error{message.type + ": found the states of " +
                   std::to_string(kept.optimizers.size()) + " optimizers, but the run has " +
                   std::to_string(placement_.optimizers.size())};
  {
    const std::lock_guard lock(mutex_);
    const auto i = static_cast<std::size_t>(process);
    if (!addresses_[i].tcp.empty()) return Error{message.type + ": found it twice"};
    addresses_[i] = std::move(read->address);
  }
  around_.prepared(node, std::move(read->kept));
  return Done{};
}

/// Handles a node's figures of its paths. Paths to the head carry samples only, and do not count.
Status Attempt::measured(int process, std::uint64_t node, const transport::Message& message) {
  const auto read = transport::from_message<Paths>(message);
  if (!read) return read.error();
  if (auto good = may(*read, process, placement_.processes); !good) return good;
  std::vector<std::string> hosts;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& other : used_) hosts.push_back(other.inventory.host);
  }
  for (const auto& path : read->paths)
    if (const auto to = static_cast<std::size_t>(path.process); to < hosts.size())
      around_.nodes.add_link(node, hosts[to], {path.latency, path.bytes_per_second},
                             around_.env.now());
  return Done{};
}

/// Handles a node's report that it lost another process, and names that node in `why`. Losses of
/// the head are reported by the head's own channels.
Status Attempt::hear_lost(int process, std::string_view type, std::optional<int> lost,
                          std::string& why) {
  if (!lost) return Done{};
  if (*lost == process || *lost > placement_.head())
    return Error{std::string(type) + ": found the loss of process " + std::to_string(*lost) +
                 ", wanted another process of " + std::to_string(placement_.processes)};
  if (*lost == placement_.head()) return Done{};
  const auto& one = used_[static_cast<std::size_t>(process)];
  const auto& other = used_[static_cast<std::size_t>(*lost)];
  why = "has lost " + other.title() + ": " + why;
  if (around_.pair_lost) around_.pair_lost(one, other, one.title() + " " + why);
  return Done{};
}

void Attempt::end_all_of(std::uint64_t node, const std::string& why, EndCause cause) {
  std::string text;
  int process = -1;
  {
    const std::lock_guard lock(mutex_);
    process = process_of(node);
    if (process < 0) return;
    text = used_[static_cast<std::size_t>(process)].title() + ": " + why;
    if (failure_.empty()) failure_ = text;
  }
  end_process(process, {text, cause});
}

void Attempt::cannot_begin(const std::string& why, EndCause cause) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  blame_->clear();
  for (const auto& [player, proxy] : proxies_) caf_shim::post(proxy, PlayerEnded{why, cause});
}

/// Returns -1 if the node takes no part. The caller holds the lock.
int Attempt::process_of(std::uint64_t node) const {
  const auto found = std::ranges::find(used_, node, &NodeHere::incarnation);
  return found == used_.end() ? -1 : static_cast<int>(found - used_.begin());
}

Status Attempt::say(const NodeHere& node, transport::Message message) const {
  message.run = around_.run;
  message.epoch = static_cast<std::uint64_t>(number_);
  auto sent = around_.nodes.send(node.incarnation, message);
  if (!sent) return within(node.title(), sent.error());
  return Done{};
}

void Attempt::end(const StageFailed& failed) const {
  if (const auto found = proxies_.find(failed.player); found != proxies_.end())
    caf_shim::post(found->second, PlayerEnded{failed.why, failed.cause});
}

void Attempt::end_process(int process, const PlayerEnded& ended) const {
  for (const auto& [player, proxy] : proxies_)
    if (placement_.process_of(player) == process) caf_shim::post(proxy, ended);
}

/// Marks a node that may be dead: no other attempt uses it before it is heard again.
void Attempt::doubt(int process) {
  const std::lock_guard lock(mutex_);
  if (!is_over_) around_.nodes.set_away(used_[static_cast<std::size_t>(process)].incarnation, true);
}

std::string Attempt::name_of(int process) const {
  return process < static_cast<int>(used_.size()) ? used_[static_cast<std::size_t>(process)].title()
                                                  : "the head";
}

}  // namespace troupe::actors
