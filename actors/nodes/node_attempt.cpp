#include "actors/nodes/node_attempt.h"

#include <algorithm>
#include <cassert>
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

constexpr auto state_patience = std::chrono::seconds(60);
constexpr auto measures_first_after = std::chrono::seconds(1);
constexpr auto measures_at_least_every = std::chrono::seconds(30);
/// The thread that opens devices closes them, too.
constexpr const char* devices_aside = "devices";

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

/// The attempt itself. It outlives a dropped NodeAttempt until its last actor is gone.
class NodeAttempt::Work : public std::enable_shared_from_this<Work> {
 public:
  Work(Context context, NodeAttemptOrder order)
      : context_(context), order_(std::move(order)), memory_(std::make_unique<MemoryPool>()) {
    link_->work = this;
  }

  Phase phase() const { return phase_; }
  void prepare(std::function<void(Status)> then);
  void start(const Start& start);
  Status deliver(transport::Message message);
  void end(std::function<void()> then);
  void drop(std::shared_ptr<Work> self);

 private:
  /// An event of a node attempt.
  enum class Event : std::uint8_t {
    opened,
    start_asked,
    connected,
    loaded,
    failed,
    end_asked,
    gone
  };

  struct Step {
    Phase from;
    Event event;
    Phase to;
  };

  /// All steps of a node attempt. An event without a step is ignored.
  static constexpr Step steps[] = {
      {Phase::preparing, Event::opened, Phase::prepared},
      {Phase::preparing, Event::failed, Phase::failed},
      {Phase::preparing, Event::end_asked, Phase::ending},
      {Phase::prepared, Event::start_asked, Phase::connecting},
      {Phase::prepared, Event::failed, Phase::failed},
      {Phase::prepared, Event::end_asked, Phase::ending},
      {Phase::connecting, Event::connected, Phase::loading},
      {Phase::connecting, Event::failed, Phase::failed},
      {Phase::connecting, Event::end_asked, Phase::ending},
      {Phase::loading, Event::loaded, Phase::playing},
      {Phase::loading, Event::failed, Phase::failed},
      {Phase::loading, Event::end_asked, Phase::ending},
      {Phase::playing, Event::end_asked, Phase::ending},
      {Phase::failed, Event::end_asked, Phase::ending},
      {Phase::ending, Event::gone, Phase::ended},
  };

  /// Another process of the attempt that cannot be reached any more.
  struct LostProcess {
    int process = 0;  // The number in the placement.
    std::string why;
  };

  /// A message of another process that came before the players exist.
  struct Waiting {
    int from = 0;
    PlayerId to;
    WireMessage wire_message;
  };

  bool enter(Event event);
  void aside(const std::string& name, Loop::Task work, Loop::Task then);
  void post(Loop::Task task);
  void stop_timers();

  Status take_home();
  std::vector<DataHere> data_here() const;
  bool is_here(PlayerId player) const;
  LinkedDevices linked() const;
  Route route();
  std::string name_of(int process) const;

  Status check_start() const;
  Status give_states();
  void load();
  void look_soon();
  void look_for_states();
  Result<StartPoint> own_state(PlayerId optimizer) const;
  Result<StartPoint> read_state(PlayerId optimizer, WireMessage wire_message) const;
  Status check_state(const Snapshot& state, PlayerId optimizer, int from) const;
  Error missing(PlayerId optimizer, const std::string& why) const;
  std::optional<WireMessage> take_state(PlayerId optimizer);
  void play();
  void measure_later(std::chrono::nanoseconds wait);
  void fail(const std::string& why);

  Status tell(const transport::Message& message);
  void ended(PlayerId player, const std::string& why);
  void lost(int process, const std::string& why);
  std::optional<LostProcess> lost() const;
  Status deliver(int from, PlayerId to, WireMessage wire_message);
  void arrived(int from, PlayerId to, WireMessage wire_message);

  void await_actors();
  void settle();
  void let_go();
  void close();
  void close_home();

  const Context context_;
  NodeAttemptOrder order_;
  std::unique_ptr<MemoryPool> memory_;  // For received data; outlives all members below.
  std::shared_ptr<RunHome> home_;
  RunSpecPtr spec_;
  std::optional<RunBounds> bounds_;
  std::shared_ptr<StateStore> store_;  // Null: no states are kept.
  const std::shared_ptr<caf_shim::ActorGroup> group_ = std::make_shared<caf_shim::ActorGroup>();

  // Used by the loop.
  Phase phase_ = Phase::preparing;
  bool is_working_ = false;  // Whether work is under way aside.
  Start start_;
  std::map<PlayerId, StartPoint> states_;  // The states that have come for optimizers here.
  std::optional<Loop::Timer> timer_;       // Ends the wait for states.
  std::optional<Loop::Timer> measuring_;   // Until the next report of paths.
  std::vector<std::function<void()>> when_ended_;

  /// Leads to an attempt that has not been dropped, without owning it.
  struct Link {
    std::mutex mutex;
    Work* work = nullptr;
  };
  const std::shared_ptr<Link> link_ = std::make_shared<Link>();

  // Held while the head is told something, and while a task is posted.
  std::mutex telling_;
  bool is_dropped_ = false;

  mutable std::recursive_mutex gate_;  // Held while players receive messages.
  std::map<PlayerId, caf::actor> here_;
  std::map<PlayerId, caf::actor> proxies_;
  caf::actor warden_;  // Without this reference it would end.
  bool is_open_ = false;
  bool is_closed_ = false;  // It ends: messages are dropped.
  std::vector<Waiting> waiting_;
  std::optional<LostProcess> lost_;  // The first one.

  std::unique_ptr<Mesh> mesh_;  // Last: its threads use the members above.
};

NodeAttempt::NodeAttempt(Context context, NodeAttemptOrder order, std::function<void(Status)> then)
    : work_(std::make_shared<Work>(context, std::move(order))) {
  work_->prepare(std::move(then));
}
NodeAttempt::~NodeAttempt() {
  auto& work = *work_;
  work.drop(std::move(work_));
}

NodeAttempt::Phase NodeAttempt::phase() const { return work_->phase(); }
void NodeAttempt::start(const Start& start) { work_->start(start); }
Status NodeAttempt::deliver(transport::Message message) {
  return work_->deliver(std::move(message));
}
void NodeAttempt::end(std::function<void()> then) { work_->end(std::move(then)); }

/// Returns whether the event has a step.
bool NodeAttempt::Work::enter(Event event) {
  const auto* step = std::ranges::find_if(
      steps, [&](const Step& one) { return one.from == phase_ && one.event == event; });
  if (step == std::end(steps)) return false;
  phase_ = step->to;
  return true;
}

/// Runs work of a phase aside. If the attempt is to end meanwhile, its end goes on after the work.
void NodeAttempt::Work::aside(const std::string& name, Loop::Task work, Loop::Task then) {
  assert(!is_working_ && "a phase has one work at most");
  is_working_ = true;
  context_.loop.aside(name, std::move(work), [this, then = std::move(then)] {
    is_working_ = false;
    if (phase_ == Phase::ending) return await_actors();
    then();
  });
}

/// Posts a task to the loop, from any thread.
void NodeAttempt::Work::post(Loop::Task task) {
  const std::lock_guard lock(telling_);
  if (!is_dropped_) context_.loop.post(std::move(task));
}

/// Looks for states on the loop, unless the attempt has ended by then.
void NodeAttempt::Work::look_soon() {
  post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_for_states();
  });
}

void NodeAttempt::Work::stop_timers() {
  for (auto* const timer : {&timer_, &measuring_}) {
    if (*timer) context_.loop.cancel(**timer);
    timer->reset();
  }
}

void NodeAttempt::Work::prepare(std::function<void(Status)> then) {
  const auto opened = std::make_shared<Status>(Done{});
  aside(
      devices_aside,
      [this, opened] {
        auto home = order_.open_home();
        if (home)
          home_ = std::move(*home);
        else
          *opened = home.error();
      },
      [this, opened, then = std::move(then)] {
        auto ready = *opened ? take_home() : *opened;
        enter(ready ? Event::opened : Event::failed);
        (void)tell(ready ? transport::to_message(Prepared{
                               mesh_->address(), store_ ? store_->kept() : std::vector<KeptStep>(),
                               data_here()})
                         : transport::to_message(PrepareFailed{ready.error().text}));
        then(std::move(ready));
      });
}

/// Takes over the opened configuration, and opens the doors.
Status NodeAttempt::Work::take_home() {
  spec_ = home_->spec();
  bounds_.emplace(RunBounds::of(*spec_));
  store_ = order_.find_store(*home_);
  const auto& given = order_.prepare;
  if (auto good = check(given.placement, *spec_); !good) return good;
  if (given.here >= given.placement.head() ||
      given.tokens.size() != static_cast<std::size_t>(given.placement.processes))
    return Error{"found an order for node " + std::to_string(given.here) + " with " +
                 std::to_string(given.tokens.size()) + " tokens for " +
                 std::to_string(given.placement.processes) + " processes"};
  MeshOrder mesh{
      .epoch = order_.epoch,
      .here = given.here,
      .processes = given.placement.processes,
      .tokens = {given.tokens.begin(), given.tokens.end()},
      .bound = bound_of(*spec_),
      .memory = memory_.get(),
      .interface = order_.interface,
      .carriers = order_.carriers,
      .linked = linked(),
      .protection = {given.plain_tensors ? PlainTensors::anywhere : PlainTensors::within_machine,
                     order_.keys, given.keys},
      .on_wire_message =
          [this](int from, PlayerId to, WireMessage wire_message) {
            arrived(from, to, std::move(wire_message));
          },
      .on_lost = [this](int other, const std::string& why) { lost(other, why); }};
  auto opened = Mesh::open(context_.network, std::move(mesh));
  if (!opened) return opened.error();
  mesh_ = std::move(*opened);
  return Done{};
}

std::vector<DataHere> NodeAttempt::Work::data_here() const {
  std::vector<DataHere> data;
  for (const auto& file : spec_->data) data.push_back({file.path, to_string(file.digest)});
  return data;
}

bool NodeAttempt::Work::is_here(PlayerId player) const {
  return order_.prepare.placement.process_of(player) == order_.prepare.here;
}

/// Returns nothing if all tensors must go by TCP.
LinkedDevices NodeAttempt::Work::linked() const {
  auto devices = home_->linked();
  const bool has_any = std::ranges::any_of(devices, [](const auto* device) { return device; });
  if (!has_any || order_.carriers == Carriers::tcp) return {};
  return {std::move(devices), traffic_of(*spec_, order_.prepare.placement), order_.edges};
}

Route NodeAttempt::Work::route() {
  const auto process_of = [this](PlayerId to) { return order_.prepare.placement.process_of(to); };
  return {.carry = [this, process_of](PlayerId to, WireMessage wire_message) -> Status {
            if (to.kind != PlayerId::Kind::supervisor || !wire_message.tensors.empty())
              return mesh_->send(process_of(to), to, wire_message);
            return tell(as_message(to, std::move(wire_message)));
          },
          .is_linked =
              [this](PlayerId to, const WireMessage& wire_message) {
                return mesh_->is_linked(to, wire_message);
              },
          .executors = spec_->executors};
}

std::string NodeAttempt::Work::name_of(int process) const {
  return name_of_process(process, order_.prepare.placement.head(), order_.attempt);
}

void NodeAttempt::Work::start(const Start& start) {
  if (phase_ != Phase::prepared) return;
  start_ = start;
  if (auto good = check_start(); !good) return fail(good.error().text);
  enter(Event::start_asked);
  mesh_->connect(start_.addresses, {start_.tokens.begin(), start_.tokens.end()}, context_.loop,
                 [this](const Status& connected) {
                   if (phase_ != Phase::connecting) return;
                   if (!connected) return fail(connected.error().text);
                   enter(Event::connected);
                   load();
                 });
}

Status NodeAttempt::Work::check_start() const {
  const auto& placement = order_.prepare.placement;
  if (start_.addresses.size() != static_cast<std::size_t>(placement.processes) ||
      start_.tokens.size() != start_.addresses.size())
    return Error{"found " + std::to_string(start_.addresses.size()) + " addresses and " +
                 std::to_string(start_.tokens.size()) + " tokens for " +
                 std::to_string(placement.processes) + " processes"};
  const auto fits = [&](std::size_t count) {
    return count == 0 || count == placement.optimizers.size();
  };
  if (!fits(start_.states.size()) || !fits(start_.keepers.size()))
    return Error{"found " + std::to_string(start_.states.size()) + " states and keepers of " +
                 std::to_string(start_.keepers.size()) + ", wanted those of " +
                 std::to_string(placement.optimizers.size()) + " optimizers"};
  for (const auto& keepers : start_.keepers)
    for (const int process : keepers)
      if (process >= placement.head() || !store_)
        return Error{"found process " + std::to_string(process) +
                     " as a keeper, but nothing is kept there"};
  for (const int process : start_.states)
    if (process >= placement.processes)
      return Error{"found a state in process " + std::to_string(process) + " of " +
                   std::to_string(placement.processes)};
  return Done{};
}

/// Gives other processes the states that they need, and waits for those of the optimizers here.
void NodeAttempt::Work::load() {
  if (auto given = give_states(); !given) return fail(given.error().text);
  timer_ = context_.loop.after(state_patience, [this] {
    timer_.reset();
    for (std::size_t i = 0; i < start_.states.size(); ++i) {
      const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
      if (is_here(optimizer) && !states_.contains(optimizer))
        return fail(missing(optimizer, "").text);
    }
  });
  look_for_states();
}

/// Sends the states that other processes need.
Status NodeAttempt::Work::give_states() {
  for (std::size_t i = 0; i < start_.states.size(); ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
    if (start_.states[i] != order_.prepare.here || is_here(optimizer)) continue;
    const auto state = store_ ? store_->find(optimizer.index, start_.step) : std::nullopt;
    if (!state)
      return Error{"the state of the " + title_of(*spec_, optimizer) + " after step " +
                   std::to_string(start_.step) + " is not kept here any more"};
    const auto to = order_.prepare.placement.process_of(optimizer);
    if (auto sent = mesh_->send(to, optimizer, to_wire_message(*state, *memory_)); !sent)
      return sent;
    context_.env.point("state_given");
  }
  return Done{};
}

/// Plays once the state of each optimizer here has come.
void NodeAttempt::Work::look_for_states() {
  if (phase_ != Phase::loading) return;
  bool has_all = true;
  for (std::size_t i = 0; i < start_.states.size(); ++i) {
    const PlayerId optimizer{PlayerId::Kind::optimizer, static_cast<int>(i)};
    if (!is_here(optimizer) || states_.contains(optimizer)) continue;
    std::optional<Result<StartPoint>> state;
    if (start_.states[i] == order_.prepare.here)
      state = own_state(optimizer);
    else if (auto came = take_state(optimizer))
      state = read_state(optimizer, std::move(*came));
    else if (const auto lost = this->lost())
      state = missing(optimizer, ": " + lost->why);
    if (state && !*state) return fail(state->error().text);
    if (state)
      states_.emplace(optimizer, std::move(**state));
    else
      has_all = false;
  }
  if (has_all) play();
}

Error NodeAttempt::Work::missing(PlayerId optimizer, const std::string& why) const {
  return Error{"the state of the " + title_of(*spec_, optimizer) + " did not come" + why};
}

Result<StartPoint> NodeAttempt::Work::own_state(PlayerId optimizer) const {
  auto state = store_ ? store_->find(optimizer.index, start_.step) : std::nullopt;
  if (!state) return missing(optimizer, ": it is not kept here any more");
  return StartPoint{state->step, std::move(state->weights), std::move(state->moments),
                    state->loss_scale};
}

Result<StartPoint> NodeAttempt::Work::read_state(PlayerId optimizer,
                                                 WireMessage wire_message) const {
  const int giver = start_.states[static_cast<std::size_t>(optimizer.index)];
  auto state = to_snapshot(std::move(wire_message));
  if (state)
    if (auto good = check_state(*state, optimizer, giver); !good) state = good.error();
  if (!state) return missing(optimizer, ": " + name_of(giver) + ": " + state.error().text);
  return StartPoint{state->step, std::move(state->weights), std::move(state->moments),
                    state->loss_scale};
}

/// The tensors of a checkpoint, which the head sends, are the optimizer's own to check.
Status NodeAttempt::Work::check_state(const Snapshot& state, PlayerId optimizer, int from) const {
  if (state.optimizer != optimizer.index || state.step != start_.step)
    return Error{std::string(Snapshot::type) + ": found the state of optimizer " +
                 std::to_string(state.optimizer) + " after step " + std::to_string(state.step) +
                 ", wanted optimizer " + std::to_string(optimizer.index) + " after step " +
                 std::to_string(start_.step)};
  if (from == order_.prepare.placement.head()) return Done{};
  if (auto good = bounds_->tensors->check(state); !good)
    return Error{std::string(Snapshot::type) + ": " + good.error().text};
  return Done{};
}

/// Takes an optimizer's state from the messages of the process that gives it, if it has come.
std::optional<WireMessage> NodeAttempt::Work::take_state(PlayerId optimizer) {
  const int giver = start_.states[static_cast<std::size_t>(optimizer.index)];
  const std::lock_guard lock(gate_);
  const auto found = std::ranges::find_if(waiting_, [&](const Waiting& waiting) {
    return waiting.from == giver && waiting.to == optimizer &&
           waiting.wire_message.type == Snapshot::type;
  });
  if (found == waiting_.end()) return {};
  auto wire_message = std::move(found->wire_message);
  waiting_.erase(found);
  return wire_message;
}

/// Starts the players.
void NodeAttempt::Work::play() {
  stop_timers();
  enter(Event::loaded);
  if (store_) store_->begin(start_.step);
  const std::lock_guard lock(gate_);
  const caf_shim::Spawner spawner(context_.system, group_);
  const auto proxy = [&](PlayerId id) { return spawn_proxy(spawner, id, route(), *memory_); };
  const auto supervisor = proxy(the_supervisor);
  proxies_.emplace(the_supervisor, supervisor);
  const auto spawn = [&](PlayerId id) {
    if (id.kind == PlayerId::Kind::keeper) return spawn_keeper(spawner, store_);
    auto state = states_.extract(id);
    return spawn_player(spawner, spec_, id,
                        state ? std::move(state.mapped()) : StartPoint{start_.step, {}, {}, {}});
  };
  const auto team = team_of(
      {spec_, supervisor, nullptr}, order_.attempt,
      [&](PlayerId id) {
        return is_here(id) ? here_.emplace(id, spawn(id)).first->second
                           : proxies_.emplace(id, proxy(id)).first->second;
      },
      start_.keepers, mesh_->adders());
  warden_ = caf_shim::spawn<Warden>(
      spawner, here_, [this](PlayerId player, const std::string& why) { ended(player, why); });
  for (const auto* group : {&here_, &proxies_})
    for (const auto& [id, actor] : *group)
      if (id != the_supervisor) caf_shim::post(actor, Meet{team.players});
  is_open_ = true;
  for (auto& [from, to, wire_message] : std::exchange(waiting_, {}))
    arrived(from, to, std::move(wire_message));
  measure_later(measures_first_after);
}

/// Tells the head what the traffic of the attempt has measured, often at first.
void NodeAttempt::Work::measure_later(std::chrono::nanoseconds wait) {
  measuring_ = context_.loop.after(wait, [weak = weak_from_this(), wait] {
    const auto self = weak.lock();
    if (!self || self->phase_ != Phase::playing) return;
    if (auto paths = self->mesh_->paths(); !paths.empty())
      (void)self->tell(transport::to_message(Paths{std::move(paths)}));
    self->measure_later(std::min<std::chrono::nanoseconds>(2 * wait, measures_at_least_every));
  });
}

/// Tells the head why the attempt cannot play here.
void NodeAttempt::Work::fail(const std::string& why) {
  stop_timers();
  enter(Event::failed);
  const auto lost = this->lost();
  (void)tell(transport::to_message(lost ? PrepareFailed{why, EndCause::lost, lost->process}
                                        : PrepareFailed{why}));
}

/// Tells the head something, from any thread.
Status NodeAttempt::Work::tell(const transport::Message& message) {
  const std::lock_guard lock(telling_);
  if (is_dropped_) return Error{"the attempt has ended"};
  return order_.tell_head(message);
}

/// Tells the head why a player has ended.
void NodeAttempt::Work::ended(PlayerId player, const std::string& why) {
  const auto lost = this->lost();
  (void)tell(
      transport::to_message(lost ? StageFailed{player, lost->why, EndCause::lost, lost->process}
                                 : StageFailed{player, why}));
}

void NodeAttempt::Work::lost(int process, const std::string& why) {
  const auto text = name_of(process) + ": " + why;
  {
    const std::lock_guard lock(gate_);
    if (!lost_) lost_ = {process, text};
    for (const auto& [id, proxy] : proxies_) caf_shim::post(proxy, PlayerEnded{text});
  }
  look_soon();
}

std::optional<NodeAttempt::Work::LostProcess> NodeAttempt::Work::lost() const {
  const std::lock_guard lock(gate_);
  return lost_;
}

Status NodeAttempt::Work::deliver(transport::Message message) {
  auto addressed = as_wire_message(std::move(message));
  if (!addressed) return addressed.error();
  const int head = order_.prepare.placement.head();
  if (phase_ == Phase::failed) return Done{};  // The head may not know it yet.
  if (phase_ != Phase::connecting && phase_ != Phase::loading)
    return deliver(head, addressed->to, std::move(addressed->wire_message));
  // The players start soon.
  arrived(head, addressed->to, std::move(addressed->wire_message));
  return Done{};
}

Status NodeAttempt::Work::deliver(int from, PlayerId to, WireMessage wire_message) {
  const std::lock_guard lock(gate_);
  const auto found = here_.find(to);
  if (found == here_.end())
    return Error{"found " + wire_message.type + " for a player that is not here"};
  return actors::deliver(std::move(wire_message), {from, to, order_.prepare.placement, *bounds_},
                         *spec_, found->second);
}

/// Takes a message of another process, from any thread.
void NodeAttempt::Work::arrived(int from, PlayerId to, WireMessage wire_message) {
  const std::lock_guard lock(gate_);
  if (is_closed_) return;
  if (!is_open_) {
    const bool is_state = wire_message.type == Snapshot::type;
    waiting_.push_back({from, to, std::move(wire_message)});
    if (is_state) look_soon();
    return;
  }
  const auto delivered = deliver(from, to, std::move(wire_message));
  if (delivered || here_.empty()) return;
  // The receiver may not exist here, so the report names one of the local players.
  const auto teller = here_.contains(to) ? to : here_.begin()->first;
  (void)tell(
      transport::to_message(StageFailed{teller, name_of(from) + ": " + delivered.error().text}));
}

void NodeAttempt::Work::end(std::function<void()> then) {
  if (phase_ == Phase::ended) return then();
  when_ended_.push_back(std::move(then));
  if (!enter(Event::end_asked)) return;
  stop_timers();
  // Devices must not wait for each other now.
  if (mesh_) mesh_->abort("the attempt has ended");
  {
    const std::lock_guard lock(gate_);
    is_closed_ = true;
    if (const auto warden = std::exchange(warden_, nullptr)) caf_shim::stop(warden);
    for (const auto* group : {&here_, &proxies_})
      for (const auto& [id, actor] : *group) caf_shim::stop(actor);
    here_.clear();
    proxies_.clear();
  }
  if (!is_working_) await_actors();
}

void NodeAttempt::Work::await_actors() {
  group_->when_empty(
      [self = shared_from_this()] { self->post([work = self.get()] { work->settle(); }); });
}

/// Waits until no state is copied any more.
void NodeAttempt::Work::settle() {
  if (!store_) return let_go();
  store_->settle(
      [self = shared_from_this()] { self->post([work = self.get()] { work->let_go(); }); });
}

/// Waits until devices have let go of transfers.
void NodeAttempt::Work::let_go() {
  if (!mesh_) return close();
  const auto ended = std::make_shared<Status>(Done{});
  context_.loop.aside(
      "edges", [this, ended] { *ended = mesh_->end(); },
      [this, ended] {
        if (!*ended) order_.stuck(ended->error().text);
        close();
      });
}

/// Closes the channels, and waits for the executors.
void NodeAttempt::Work::close() {
  if (spec_)
    for (const auto* executor : spec_->executors)
      if (const auto fault = executor ? executor->fault() : std::nullopt)
        order_.stuck("a device has failed: " + *fault);
  mesh_.reset();  // Nothing arrives any more.
  waiting_.clear();
  states_.clear();
  spec_.reset();
  if (!home_) return close_home();
  // A device calls this on its own thread, which must never own the devices: it cannot wait for
  // itself. An attempt that is dropped meanwhile waits for its devices when it is destroyed.
  home_->finish([link = link_] {
    const std::lock_guard lock(link->mutex);
    if (link->work) link->work->post([work = link->work] { work->close_home(); });
  });
}

void NodeAttempt::Work::close_home() {
  context_.loop.aside(
      devices_aside, [this] { home_.reset(); },
      [this] {
        store_.reset();
        enter(Event::gone);
        for (const auto& then : std::exchange(when_ended_, {})) then();
      });
}

/// From now on it calls nobody, and lives as long as its actors and the copies of its states.
void NodeAttempt::Work::drop(std::shared_ptr<Work> self) {
  {
    const std::lock_guard lock(link_->mutex);
    link_->work = nullptr;
  }
  {
    const std::scoped_lock lock(gate_, telling_);
    is_dropped_ = is_closed_ = true;
    here_.clear();
    proxies_.clear();
    warden_ = nullptr;
  }
  if (phase_ == Phase::ended) return;
  if (mesh_) mesh_->abort("the attempt was dropped");
  group_->kill_all();
  // It may hold memory of the store, which must outlive it, and a store cannot be destroyed on its
  // own thread. So the last job of that thread owns the attempt, and somebody else the store.
  group_->when_empty([self = std::move(self), store = std::exchange(store_, nullptr)]() mutable {
    if (store) store->settle([self = std::move(self)] {});
  });
}

}  // namespace troupe::actors
