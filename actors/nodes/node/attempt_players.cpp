#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/nodes/node/attempt_work.h"
#include "actors/nodes/proxy.h"
#include "actors/play/keeper_actor.h"

namespace troupe::actors {
namespace {

constexpr auto measures_first_after = std::chrono::seconds(1);
constexpr auto measures_at_least_every = std::chrono::seconds(30);

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

}  // namespace

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

}  // namespace troupe::actors
