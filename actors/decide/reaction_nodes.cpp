#include <algorithm>

#include "actors/decide/reaction.h"
#include "core/units.h"

namespace troupe::actors::reconciler {
namespace {

constexpr std::size_t most_changes = 1024;
constexpr Duration first_wait_for_path = std::chrono::seconds(2);
constexpr Duration longest_wait_for_path = std::chrono::minutes(1);
constexpr int most_doublings = 10;

}  // namespace

void Reaction::on(const Attached& attached) {
  if (state_.phase == Phase::boot) return;
  if (attached.term > state_.term) return on(Deposed{attached.term});
  const auto older = std::ranges::find_if(state_.nodes, [&](const auto& entry) {
    return entry.second.name == attached.name && entry.first != attached.life;
  });
  if (older != state_.nodes.end()) {
    const Life gone = older->first;
    lose_from(gone, "it came back as another process");
    // If this event is late, this rejects the newer process, which then starts a new life.
    order(Reject{gone, "another process has its name"});
  }

  const bool is_new = state_.nodes.try_emplace(attached.life, Node{attached.name}).second;
  if (is_new) state_.changes.push_back(now_);
  if (is_new) hear_of_keeper(attached.name);
  const bool plays = is_member(attached.life) && attached.epoch == state_.epoch;
  switch (state_.phase) {
    case Phase::gather:
      return gather(attached.name, plays);
    case Phase::plan:
    case Phase::prepare:
    case Phase::load:
      return row(Row::arrival_under_way, attached.name + " may be in the next plan");
    case Phase::run:
      row(Row::run_arrival, attached.name + " is there");
      // The node had lost its connection before it got the order.
      if (is_member(attached.life) && !plays)
        return order(Activate{state_.epoch, {attached.life}, state_.line});
      return consider_switch();
    case Phase::recover:
      row(Row::recover_merges, attached.name + " came while the run recovers");
      if (state_.waits_for.contains(attached.life)) order(Freeze{state_.epoch, {attached.life}});
      if (state_.waits_for_keepers) go_on_if_all_frozen();
      return;
    case Phase::suspend:
      if (static_cast<int>(usable().size()) < limits_.fewest)
        return row(Row::suspend_waits, "still too few nodes");
      row(Row::suspend_enough, "enough nodes again");
      return recover();
    case Phase::boot:
    case Phase::halted:
    case Phase::done:
      return;
  }
}

/// Handles a node that connects to a new head.
void Reaction::gather(const std::string& name, bool plays) {
  if (state_.plan.members.empty() && !state_.is_broken) {
    if (static_cast<int>(usable().size()) < limits_.most)
      return row(Row::gather_waits, "more nodes may come");
    row(Row::gather_enough, "all nodes are there that the run can use");
    return plan_or_suspend();
  }
  const auto led =
      std::ranges::find(state_.led_before, name, [](const auto& entry) { return entry.second; });
  if (led != state_.led_before.end()) {
    if (!plays) {
      std::erase(state_.plan.members, led->first);
      state_.is_broken = true;
    }
    state_.led_before.erase(led);
  }
  if (!state_.led_before.empty())
    return row(Row::gather_waits, std::to_string(state_.led_before.size()) +
                                      " nodes of the epoch have not come back yet");
  if (state_.is_broken) {
    row(Row::gather_again, "all nodes of the epoch are there, but not all of them play it");
    return recover();
  }
  row(Row::gather_adopt, "all nodes of the epoch are there, and play it");
  order(Adopt{state_.term, state_.epoch, state_.plan.members});
  state_.phase = Phase::run;
  state_.timer = 0;
  consider_switch();
}

/// An earlier head's attempt cannot continue. Nodes that have not returned yet may still do so.
void Reaction::break_what_was_played() {
  state_.is_broken = true;
  if (state_.led_before.empty()) recover();
}

void Reaction::on(const Lost& lost) {
  // A process may be known to have ended only after it fell silent.
  if (!lost.is_silent && state_.silent_keepers.erase(lost.life) > 0 && state_.waits_for_keepers)
    return go_on_if_all_frozen();
  if (lost.is_silent) fall_silent(lost.life);
  lose_from(lost.life, lost.why);
}

void Reaction::on(const KeptBy& kept) {
  if (kept.epoch != state_.epoch) return;
  state_.keepers = kept.keepers;
  state_.silent_keepers.clear();
}

void Reaction::fall_silent(Life life) {
  const auto found = state_.nodes.find(life);
  if (found == state_.nodes.end()) return;
  const bool keeps = std::ranges::any_of(
      state_.keepers, [&](const auto& keepers) { return std::ranges::count(keepers, life) > 0; });
  if (keeps)
    state_.silent_keepers[life] = {found->second.name, now_ + limits_.gather_patience, false};
}

/// Notes that a silent node may have returned.
void Reaction::hear_of_keeper(const std::string& name) {
  for (auto& [life, keeper] : state_.silent_keepers)
    if (keeper.name == name) keeper.has_returned = true;
}

/// Handles a lost node, according to the phase.
void Reaction::lose_from(Life life, const std::string& why) {
  const auto found = state_.nodes.find(life);
  if (found == state_.nodes.end()) return;
  const Node node = found->second;
  const std::string text = node.name + " is lost: " + why;
  const bool was_member = is_member(life);
  const bool was_waited_for = state_.waits_for.contains(life);
  lose(life, why);
  switch (state_.phase) {
    case Phase::gather:
      row(Row::gather_lost, text);
      return was_member ? break_what_was_played() : void();
    case Phase::plan:
      row(Row::loss_under_way, text);
      return recover();
    case Phase::prepare:
    case Phase::load:
      if (!was_member) return row(Row::run_spare_lost, text);
      row(Row::loss_under_way, text);
      give_up_epoch(text);
      return recover();
    case Phase::run:
      if (was_member) {
        row(node.use == Node::Use::leaving ? Row::drain_lost
            : state_.better                ? Row::switch_dropped
                                           : Row::run_loss,
            text);
        return recover();
      }
      if (state_.better && std::ranges::count(state_.better->members, life) > 0) {
        state_.better.reset();
        return row(Row::switch_dropped, text + "; the plan with it is dropped");
      }
      return row(Row::run_spare_lost, text);
    case Phase::recover:
      row(Row::recover_merges, text);
      // Otherwise a timer runs, which a loss does not extend.
      if (was_waited_for) go_on_if_all_frozen();
      return;
    case Phase::suspend:
      return row(Row::suspend_waits, text);
    case Phase::boot:
    case Phase::halted:
    case Phase::done:
      return;
  }
}

void Reaction::lose(Life life, const std::string& why) {
  const auto found = state_.nodes.find(life);
  if (found == state_.nodes.end()) return;
  auto& dead = record(Record::Kind::dead, why);
  dead.lives = {life};
  dead.names = {found->second.name};
  state_.nodes.erase(found);
  state_.waits_for.erase(life);
  std::erase_if(state_.lost_pairs, [&](const auto& entry) {
    return entry.first.first == life || entry.first.second == life;
  });
  state_.changes.push_back(now_);
  if (state_.changes.size() > most_changes) state_.changes.erase(state_.changes.begin());
}

/// Decides only what the lost path means for the next plan. The players end the attempt.
void Reaction::on(const PairLost& lost) {
  if (lost.epoch != state_.epoch || lost.one == lost.other) return;
  if (!is_member(lost.one) || !is_member(lost.other)) return;
  if (!state_.nodes.contains(lost.one) || !state_.nodes.contains(lost.other)) return;
  auto& pair = state_.lost_pairs[std::minmax(lost.one, lost.other)];
  if (pair.epoch == lost.epoch) return;  // Both nodes report it.
  const auto wait = first_wait_for_path * (1 << std::min(pair.times, most_doublings));
  pair = {pair.times + 1, now_ + std::min<Duration>(wait, longest_wait_for_path), lost.epoch,
          lost.why};
  row(Row::pair_lost, lost.why);
}

/// Only notes it: the node may just be late, and plans for its loss exist already (foresight.h).
void Reaction::on(const Suspected& suspected) {
  if (state_.phase != Phase::run || !is_member(suspected.life)) return;
  row(Row::run_suspect, name_of(suspected.life) + ": " + suspected.why);
}

void Reaction::on(const Slow& slow) {
  if (!is_member(slow.life)) return;
  row(Row::run_slow, name_of(slow.life) + " is slow: " + slow.why);
  order(Warn{answer_.reason});
}

void Reaction::on(const Notice& notice) {
  const auto found = state_.nodes.find(notice.life);
  if (found == state_.nodes.end()) return;
  found->second.use = Node::Use::leaving;
  const std::string text = found->second.name + " will go";
  if (state_.phase != Phase::run) {
    row(Row::run_notice, text);
    if (state_.phase == Phase::suspend) release_idle();
    return;
  }
  if (!is_member(notice.life)) {
    row(Row::run_notice, text + "; it has no part in the run");
    return release_idle();
  }
  const auto step = from_seconds(state_.plan.rate > 0 ? 1 / state_.plan.rate : 0);
  // Time for the open step, one more if a boundary was just missed, and the save.
  if (notice.left > 2 * step + limits_.hold_time) {
    row(Row::run_notice, text + "; after the next boundary it has no part any more");
    return ask_save_point();
  }
  row(Row::run_notice_short, text + " before a boundary can be reached");
  recover();
}

void Reaction::on(const DrainAsked& asked) {
  const auto found = std::ranges::find_if(
      state_.nodes, [&](const auto& entry) { return entry.second.name == asked.name; });
  if (found == state_.nodes.end()) return;
  row(Row::drain_asked, "somebody asked to drain " + asked.name);
  on(Notice{found->first, Duration::max()});
}

/// A node with too many strikes is avoided for a while.
void Reaction::strike(const std::string& name, const std::string& why) {
  if (name.empty()) return;
  record(Record::Kind::strike, why).names = {name};
  state_.strikes.strike(name, now_);
}

/// Excludes a node from the next plan.
void Reaction::set_aside(Life life) {
  const auto found = state_.nodes.find(life);
  if (found != state_.nodes.end() && found->second.use == Node::Use::free)
    found->second.use = Node::Use::passed_over;
}

void Reaction::free_passed_over() {
  for (auto& [life, node] : state_.nodes)
    if (node.use == Node::Use::passed_over) node.use = Node::Use::free;
}

/// Lets leaving nodes go that have no part in the plan.
void Reaction::release_idle() {
  for (const auto& [life, node] : state_.nodes)
    if (node.use == Node::Use::leaving && !is_member(life))
      order(Retire{life, "it has no part in the run any more"});
}

bool Reaction::is_member(Life life) const {
  return std::ranges::count(state_.plan.members, life) > 0;
}

std::vector<Life> Reaction::everybody() const {
  std::vector<Life> lives;
  for (const auto& [life, node] : state_.nodes) lives.push_back(life);
  return lives;
}

std::string Reaction::name_of(Life life) const {
  const auto found = state_.nodes.find(life);
  return found == state_.nodes.end() ? std::string() : found->second.name;
}

}  // namespace troupe::actors::reconciler
