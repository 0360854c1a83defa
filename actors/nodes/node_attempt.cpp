#include "actors/nodes/node_attempt.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/nodes/proxy.h"
#include "actors/play/keeper_actor.h"
#include "actors/play/players.h"

namespace troupe::actors {
namespace {

constexpr std::size_t actor_threads = 2;
constexpr auto state_patience = std::chrono::seconds(60);

/// Watches this node's players and reports their ends to the head.
class Warden {
 public:
  static constexpr const char* name = "warden";

  Warden(caf_shim::Base* self, std::map<PlayerId, caf::actor> players,
         std::function<void(PlayerId, std::string)> tell)
      : self_(self), tell_(std::move(tell)) {
    self_->on_down([this](const caf::actor_addr& who, const caf::error& why) { down(who, why); });
    for (const auto& [id, actor] : players) {
      self_->watch(actor);
      watched_.emplace(actor.address(), id);
    }
  }

  // A behavior that keeps it alive; it ends when it watches nobody any more.
  caf::behavior make_behavior() {
    return {[](Look) {}};
  }

 private:
  void down(const caf::actor_addr& who, const caf::error& why) {
    const auto found = watched_.extract(who);
    if (!found.empty()) tell_(found.mapped(), caf_shim::to_text(why));
    if (watched_.empty()) self_->quit();
  }

  caf_shim::Base* self_;
  std::function<void(PlayerId, std::string)> tell_;
  std::map<caf::actor_addr, PlayerId> watched_;
};

/// Names the attempt too, so that losses of different attempts count as different failures.
std::string name_of_process(int process, int head, int attempt) {
  return process == head
             ? "the head"
             : "node " + std::to_string(process) + " of attempt " + std::to_string(attempt);
}

}  // namespace

transport::Bound bound_of(const RunSpec& spec) {
  std::size_t parameters = 0, samples = 0;
  for (const auto& unit : spec.model->units)
    for (const auto& parameter : unit.layer->parameters())
      parameters += static_cast<std::size_t>(parameter.shape.count());
  samples = static_cast<std::size_t>(spec.samples_in_step);
  // Two states with two moments each (one to start from, one to keep), gradients of several groups,
  // and the activations of a step.
  constexpr std::size_t room = std::size_t{256} << 20;
  return {.bytes = parameters * sizeof(float) * 20 + samples * (std::size_t{1} << 20) + room,
          .parcels = 65'536};
}

/// Messages of other processes that arrive before the players exist, and the players.
class NodeAttempt::State {
 public:
  struct Waiting {
    int from = 0;
    PlayerId to;
    WireMessage wire_message;
  };

  void put(Waiting waiting) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(waiting));
    came_.notify_all();
  }
  /// Waits for an optimizer's state from the process that gives it.
  std::optional<WireMessage> take_state(PlayerId optimizer, int giver,
                                        std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto found = std::ranges::find_if(waiting_, [&](const Waiting& waiting) {
        return waiting.from == giver && waiting.to == optimizer &&
               waiting.wire_message.type == Snapshot::type;
      });
      if (found != waiting_.end()) {
        auto wire_message = std::move(found->wire_message);
        waiting_.erase(found);
        return wire_message;
      }
      if (lost_ || came_.wait_until(lock, end) == std::cv_status::timeout) return {};
    }
  }
  void lost(int process, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!lost_) lost_ = {process, why};
    came_.notify_all();
  }
  std::optional<LostProcess> lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  std::recursive_mutex gate;  // Held while players receive messages.
  std::map<PlayerId, caf::actor> here;
  std::map<PlayerId, caf::actor> proxies;
  caf::actor warden;  // Without this reference it would end.
  bool open = false;

  std::vector<Waiting> take_all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Waiting> waiting_;
  std::optional<LostProcess> lost_;  // The first one.
};

NodeAttempt::NodeAttempt(NodeAttemptOrder order)
    : order_(std::move(order)),
      spec_(order_.home->spec()),
      bounds_(RunBounds::of(*spec_)),
      memory_(std::make_unique<MemoryPool>()),
      state_(std::make_unique<State>()),
      config_(actor_threads) {}

NodeAttempt::~NodeAttempt() {
  // Devices must not wait for each other now.
  if (mesh_) mesh_->abort("the attempt has ended");
  {
    const std::lock_guard lock(state_->gate);
    state_->open = false;
    if (auto warden = std::exchange(state_->warden, nullptr)) caf_shim::stop(warden);
    for (const auto& [id, actor] : state_->here) caf_shim::stop(actor);
    for (const auto& [id, actor] : state_->proxies) caf_shim::stop(actor);
    state_->here.clear();
    state_->proxies.clear();
  }
  if (system_) system_->await_all_actors_done();
  if (order_.state_store) order_.state_store->settle();
  system_.reset();
  if (mesh_)
    if (auto ended = mesh_->end(); !ended) order_.stuck(ended.error().text);
  for (const auto* executor : spec_->executors)
    if (const auto fault = executor ? executor->fault() : std::nullopt)
      order_.stuck("a device has failed: " + *fault);
  mesh_.reset();  // Nothing arrives any more.
  (void)state_->take_all();
  // Executors finish their jobs, which may use memory of this object.
  spec_.reset();
  order_.home.reset();
}

Result<std::unique_ptr<NodeAttempt>> NodeAttempt::open(transport::Network& network,
                                                       NodeAttemptOrder order) {
  std::unique_ptr<NodeAttempt> node_attempt(new NodeAttempt(std::move(order)));
  const auto& given = node_attempt->order_.prepare;
  if (auto good = check(given.placement, *node_attempt->spec_); !good) return good.error();
  if (given.here >= given.placement.head() ||
      given.tokens.size() != static_cast<std::size_t>(given.placement.processes))
    return Error{"found an order for node " + std::to_string(given.here) + " with " +
                 std::to_string(given.tokens.size()) + " tokens for " +
                 std::to_string(given.placement.processes) + " processes"};
  MeshOrder mesh{
      .epoch = node_attempt->order_.epoch,
      .here = given.here,
      .processes = given.placement.processes,
      .tokens = {given.tokens.begin(), given.tokens.end()},
      .bound = bound_of(*node_attempt->spec_),
      .memory = node_attempt->memory_.get(),
      .interface = node_attempt->order_.interface,
      .carriers = node_attempt->order_.carriers,
      .linked = node_attempt->linked(),
      .protection = {given.plain_tensors ? PlainTensors::anywhere : PlainTensors::within_machine,
                     node_attempt->order_.keys, given.keys},
      .on_wire_message =
          [node_attempt = node_attempt.get()](int from, PlayerId to, WireMessage wire_message) {
            node_attempt->arrived(from, to, std::move(wire_message));
          },
      .on_lost =
          [state = node_attempt->state_.get(), head = given.placement.head(),
           attempt = node_attempt->order_.attempt](int other, const std::string& why) {
            const auto text = name_of_process(other, head, attempt) + ": " + why;
            state->lost(other, text);
            const std::lock_guard lock(state->gate);
            for (const auto& [id, proxy] : state->proxies) caf_shim::post(proxy, PlayerEnded{text});
          }};
  auto opened = Mesh::open(network, std::move(mesh));
  if (!opened) return opened.error();
  node_attempt->mesh_ = std::move(*opened);
  return node_attempt;
}

bool NodeAttempt::is_here(PlayerId player) const {
  return order_.prepare.placement.process_of(player) == order_.prepare.here;
}

/// Returns nothing if all tensors must go by TCP.
LinkedDevices NodeAttempt::linked() const {
  auto devices = order_.home->linked();
  const bool has_any = std::ranges::any_of(devices, [](const auto* device) { return device; });
  if (!has_any || order_.carriers == Carriers::tcp) return {};
  return {std::move(devices), traffic_of(*spec_, order_.prepare.placement), order_.edges};
}

Route NodeAttempt::route() {
  const auto process_of = [this](PlayerId to) { return order_.prepare.placement.process_of(to); };
  return {.carry = [this, process_of](PlayerId to, WireMessage wire_message) -> Status {
            if (to.kind != PlayerId::Kind::supervisor || !wire_message.tensors.empty())
              return mesh_->send(process_of(to), to, wire_message);
            return order_.tell_head(as_message(to, std::move(wire_message)));
          },
          .is_linked =
              [this](PlayerId to, const WireMessage& wire_message) {
                return mesh_->is_linked(to, wire_message);
              },
          .executors = spec_->executors};
}

std::optional<LostProcess> NodeAttempt::lost() const { return state_->lost(); }

Status NodeAttempt::check_start(const Start& start) const {
  const auto& placement = order_.prepare.placement;
  if (start.addresses.size() != static_cast<std::size_t>(placement.processes) ||
      start.tokens.size() != start.addresses.size())
    return Error{"found " + std::to_string(start.addresses.size()) + " addresses and " +
                 std::to_string(start.tokens.size()) + " tokens for " +
                 std::to_string(placement.processes) + " processes"};
  const auto fits = [&](std::size_t count) {
    return count == 0 || count == placement.optimizers.size();
  };
  if (!fits(start.states.size()) || !fits(start.keepers.size()))
    return Error{"found " + std::to_string(start.states.size()) + " states and keepers of " +
                 std::to_string(start.keepers.size()) + ", wanted those of " +
                 std::to_string(placement.optimizers.size()) + " optimizers"};
  for (const auto& keepers : start.keepers)
    for (const int process : keepers)
      if (process >= placement.head() || !order_.state_store)
        return Error{"found process " + std::to_string(process) +
                     " as a keeper, but nothing is kept there"};
  for (const int process : start.states)
    if (process >= placement.processes)
      return Error{"found a state in process " + std::to_string(process) + " of " +
                   std::to_string(placement.processes)};
  return Done{};
}

/// Sends the states that other processes need.
Status NodeAttempt::give_states(const Start& start) {
  for (std::size_t i = 0; i < start.states.size(); ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
    if (start.states[i] != order_.prepare.here || is_here(optimizer)) continue;
    const auto state =
        order_.state_store ? order_.state_store->find(optimizer.index, start.step) : std::nullopt;
    if (!state)
      return Error{"the state of the " + title_of(*spec_, optimizer) + " after step " +
                   std::to_string(start.step) + " is not kept here any more"};
    const auto to = order_.prepare.placement.process_of(optimizer);
    if (auto sent = mesh_->send(to, optimizer, to_wire_message(*state, *memory_)); !sent)
      return sent;
  }
  return Done{};
}

Result<StartPoint> NodeAttempt::state_of(PlayerId optimizer, int from, std::int64_t step,
                                         std::chrono::steady_clock::time_point end) {
  const auto missing = [&](const std::string& why) {
    return Error{"the state of the " + title_of(*spec_, optimizer) + " did not come" + why};
  };
  std::optional<Snapshot> snapshot;
  if (from == order_.prepare.here) {
    if (order_.state_store) snapshot = order_.state_store->find(optimizer.index, step);
    if (!snapshot) return missing(": it is not kept here any more");
  } else {
    auto wire_message = state_->take_state(optimizer, from, end);
    if (!wire_message) {
      const auto lost = state_->lost();
      return missing(lost ? ": " + lost->why : "");
    }
    auto came = to_snapshot(std::move(*wire_message));
    if (came)
      if (auto good = check_state(*came, optimizer, from, step); !good) came = good.error();
    if (!came) return missing(": " + name_of(from) + ": " + came.error().text);
    snapshot = std::move(*came);
  }
  return StartPoint{snapshot->step, std::move(snapshot->weights), std::move(snapshot->moments),
                    snapshot->loss_scale};
}

/// The tensors of a checkpoint, which the head sends, are the optimizer's own to check.
Status NodeAttempt::check_state(const Snapshot& state, PlayerId optimizer, int from,
                                std::int64_t step) const {
  if (state.optimizer != optimizer.index || state.step != step)
    return Error{std::string(Snapshot::type) + ": found the state of optimizer " +
                 std::to_string(state.optimizer) + " after step " + std::to_string(state.step) +
                 ", wanted optimizer " + std::to_string(optimizer.index) + " after step " +
                 std::to_string(step)};
  if (from == order_.prepare.placement.head()) return Done{};
  if (auto good = bounds_.tensors->check(state); !good)
    return Error{std::string(Snapshot::type) + ": " + good.error().text};
  return Done{};
}

std::string NodeAttempt::name_of(int process) const {
  return name_of_process(process, order_.prepare.placement.head(), order_.attempt);
}

void NodeAttempt::start(const Start& start, Loop& loop, std::function<void(const Status&)> then) {
  if (auto good = check_start(start); !good) return then(good);
  mesh_->connect(start.addresses, {start.tokens.begin(), start.tokens.end()}, loop,
                 [this, start, then = std::move(then)](const Status& connected) {
                   then(connected ? play(start) : connected);
                 });
}

/// Waits for the state and starts the players.
Status NodeAttempt::play(const Start& start) {
  system_ = std::make_unique<caf::actor_system>(config_);
  std::map<PlayerId, StartPoint> starts;
  const auto end = std::chrono::steady_clock::now() + state_patience;
  if (auto given = give_states(start); !given) return given;
  for (std::size_t i = 0; i < start.states.size(); ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
    if (!is_here(optimizer)) continue;
    auto state = state_of(optimizer, start.states[i], start.step, end);
    if (!state) return state.error();
    starts[optimizer] = std::move(*state);
  }
  if (order_.state_store) order_.state_store->begin(start.step);

  const std::lock_guard lock(state_->gate);
  const auto proxy = [&](PlayerId id) { return spawn_proxy(*system_, id, route(), *memory_); };
  const auto supervisor = proxy(the_supervisor);
  state_->proxies.emplace(the_supervisor, supervisor);
  const auto spawn = [&](PlayerId id) {
    if (id.kind == PlayerId::Kind::keeper) return spawn_keeper(*system_, order_.state_store);
    auto from = starts.contains(id) ? std::move(starts.at(id)) : StartPoint{start.step, {}, {}, {}};
    return spawn_player(*system_, spec_, id, std::move(from));
  };
  const auto team = team_of(
      {spec_, supervisor, nullptr}, order_.attempt,
      [&](PlayerId id) {
        return is_here(id) ? state_->here.emplace(id, spawn(id)).first->second
                           : state_->proxies.emplace(id, proxy(id)).first->second;
      },
      start.keepers, mesh_->adders());
  state_->warden = caf_shim::spawn<Warden>(
      *system_, state_->here,
      [tell = order_.tell_head, state = state_.get()](PlayerId player, const std::string& why) {
        const auto lost = state->lost();
        const auto failed = lost ? StageFailed{player, lost->why, EndCause::lost, lost->process}
                                 : StageFailed{player, why};
        (void)tell(transport::to_message(failed));
      });
  for (const auto* group : {&state_->here, &state_->proxies})
    for (const auto& [id, actor] : *group)
      if (id != the_supervisor) caf_shim::post(actor, Meet{team.players});
  state_->open = true;
  for (auto& [from, to, wire_message] : state_->take_all())
    arrived(from, to, std::move(wire_message));
  return Done{};
}

Status NodeAttempt::deliver(transport::Message message) {
  auto addressed = as_wire_message(std::move(message));
  if (!addressed) return addressed.error();
  const int head = order_.prepare.placement.head();
  const std::lock_guard lock(state_->gate);
  if (state_->open) return deliver(head, addressed->to, std::move(addressed->wire_message));
  state_->put({head, addressed->to, std::move(addressed->wire_message)});
  return Done{};
}

Status NodeAttempt::deliver(int from, PlayerId to, WireMessage wire_message) {
  const std::lock_guard lock(state_->gate);
  const auto found = state_->here.find(to);
  if (found == state_->here.end())
    return Error{"found " + wire_message.type + " for a player that is not here"};
  return actors::deliver(std::move(wire_message), {from, to, order_.prepare.placement, bounds_},
                         *spec_, found->second);
}

void NodeAttempt::arrived(int from, PlayerId to, WireMessage wire_message) {
  const std::lock_guard lock(state_->gate);
  if (!state_->open) return state_->put({from, to, std::move(wire_message)});
  const auto delivered = deliver(from, to, std::move(wire_message));
  if (delivered || state_->here.empty()) return;
  // The receiver may not exist here, so the report names one of the local players.
  const auto teller = state_->here.contains(to) ? to : state_->here.begin()->first;
  (void)order_.tell_head(
      transport::to_message(StageFailed{teller, name_of(from) + ": " + delivered.error().text}));
}

}  // namespace troupe::actors
