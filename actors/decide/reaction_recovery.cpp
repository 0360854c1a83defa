#include <algorithm>

#include "actors/decide/reaction.h"

namespace troupe::actors::reconciler {
namespace {

constexpr Duration longest_back_off = std::chrono::minutes(1);

}  // namespace

/// Stops all nodes, to learn which ones are left; then the run restarts from the newest state.
/// Events in the meantime are merged into this recovery.
void Reaction::recover() {
  if (state_.phase == Phase::run) count_epoch_in_force();
  state_.phase = Phase::recover;
  state_.waits_for_keepers = false;
  state_.led_before.clear();
  state_.is_broken = false;
  state_.better.reset();
  state_.plans_aside = false;
  ++state_.plan_number;
  abort_save();
  state_.waits_for.clear();
  for (const Life life : state_.plan.members) {
    const auto found = state_.nodes.find(life);
    // A node that failed has stopped already.
    if (found != state_.nodes.end() && found->second.use != Node::Use::passed_over)
      state_.waits_for.insert(life);
  }
  if (state_.waits_for.empty()) return go_on_if_all_frozen();
  order(Freeze{state_.epoch, {state_.waits_for.begin(), state_.waits_for.end()}});
  set_phase_timer(limits_.inventory_patience);
}

void Reaction::on(const Frozen& frozen) {
  if (frozen.epoch != state_.epoch) return;
  // It stopped without an order: it could not continue, or an earlier head's order came late.
  const bool is_played = state_.phase == Phase::run;
  const bool is_under_way = state_.phase == Phase::prepare || state_.phase == Phase::load;
  if ((is_played || is_under_way) && is_member(frozen.life)) {
    row(Row::recover_waits, name_of(frozen.life) + " has stopped by itself");
    if (is_under_way) give_up_epoch(answer_.reason);
    return recover();
  }
  if (state_.phase != Phase::recover || state_.waits_for.erase(frozen.life) == 0) return;
  state_.decided = std::max(state_.decided, frozen.step);
  if (!state_.waits_for.empty())
    return row(Row::recover_waits, name_of(frozen.life) + " has stopped");
  go_on_if_all_frozen();
}

/// Counts an attempt without a new step, and whether it came near the furthest step.
void Reaction::count_epoch_in_force() {
  if (state_.did_new_step) return;
  if (ends_by_lost_path()) {
    --state_.futile;
    return;
  }
  if (!state_.futile_since) state_.futile_since = now_;
  const bool is_near = 2 * (state_.decided - state_.line) >= state_.furthest - state_.line;
  if (is_near) ++state_.futile_near;
}

/// A lost node's pairs are deleted, so both nodes of each pair are alive.
bool Reaction::ends_by_lost_path() const {
  return std::ranges::any_of(
      state_.lost_pairs, [this](const auto& entry) { return entry.second.epoch == state_.epoch; });
}

bool Reaction::is_hopeless() const {
  if (state_.futile_near >= limits_.most_futile) return true;
  return state_.futile >= limits_.most_futile && state_.futile_since &&
         now_ - *state_.futile_since >= limits_.futile_time;
}

void Reaction::go_on_if_all_frozen() {
  if (!state_.waits_for.empty()) return;
  if (is_hopeless()) {
    row(Row::recover_hopeless,
        std::to_string(state_.futile) + " attempts in a row ended before step " +
            std::to_string(state_.furthest + 1) +
            " was done, which no attempt has done; given up (limits.futile_epochs + "
            "limits.strikes = " +
            std::to_string(limits_.most_futile) + ")");
    return end(exit_failed, Phase::halted, answer_.reason);
  }
  if (state_.futile >= limits_.futile_epochs) {
    row(Row::recover_futile, std::to_string(state_.futile) + " epochs came to nothing");
    order(Warn{answer_.reason});
    state_.phase = Phase::recover;
    const int doubled = std::min(state_.futile - limits_.futile_epochs, 10);
    return set_phase_timer(std::min<Duration>(limits_.back_off * (1 << doubled), longest_back_off));
  }
  if (const auto until = keepers_until()) {
    row(Row::recover_gathers, "nodes that fell silent keep what nobody else has");
    state_.phase = Phase::recover;
    state_.waits_for_keepers = true;
    return set_phase_timer(*until - now_);
  }
  row(Row::recover_plans, "who is there is known");
  plan_or_suspend();
}

/// Returns until when to wait for silent nodes so that the run can resume from memory. Returns
/// nothing if all states are available, or if one is lost for good.
std::optional<Time> Reaction::keepers_until() const {
  std::optional<Time> latest;
  for (const auto& keepers : state_.keepers) {
    std::optional<Time> until;
    bool is_there = false;
    for (const Life life : keepers) {
      const auto silent = state_.silent_keepers.find(life);
      const bool is_silent = silent != state_.silent_keepers.end();
      is_there |= state_.nodes.contains(life) || (is_silent && silent->second.has_returned);
      if (is_silent && silent->second.until > now_)
        until = std::max(until.value_or(silent->second.until), silent->second.until);
    }
    if (is_there) continue;
    if (!until) return {};
    latest = std::max(latest.value_or(*until), *until);
  }
  return latest;
}

void Reaction::plan_or_suspend() {
  state_.waits_for_keepers = false;
  if (end_if_all_is_saved()) return;
  if (state_.is_stopping) {
    row(Row::stop_done, "it stops; what was done is in the newest checkpoint");
    return end(exit_preempted, Phase::done, answer_.reason);
  }
  if (static_cast<int>(usable().size()) < limits_.fewest) take_whoever_is_there();
  const auto nodes = usable();
  if (nodes.empty() || static_cast<int>(nodes.size()) < limits_.fewest) return suspend();
  state_.phase = Phase::plan;
  state_.plans_aside = false;
  state_.planned_for = nodes;
  order(MakePlan{++state_.plan_number, nodes});
  set_phase_timer(limits_.plan_patience);
}

/// Uses nodes that failed rather than none. Returns false if there are none.
bool Reaction::take_whoever_is_there() {
  const auto before = usable();
  free_passed_over();
  state_.takes_all = true;
  return usable() != before;
}

void Reaction::suspend() {
  row(Row::suspend_begins, "there are too few nodes: the run waits for more");
  state_.phase = Phase::suspend;
  state_.plan = {};
  release_idle();
  if (!state_.suspended_until) state_.suspended_until = now_ + limits_.suspend_patience;
  if (!state_.lost_pairs.empty())
    order(Warn{"the run waits for a path between nodes, and tries it again and again: " +
               state_.lost_pairs.begin()->second.why});
  wait_suspended();
}

/// Waits until a lost path may be tried again, but no longer than the run may wait.
void Reaction::wait_suspended() {
  Time until = *state_.suspended_until;
  for (const auto& [pair, loss] : state_.lost_pairs)
    if (loss.until > now_) until = std::min(until, loss.until);
  set_phase_timer(std::max<Duration>(until - now_, Duration::zero()));
}

void Reaction::suspend_over_or_try() {
  if (now_ >= *state_.suspended_until) {
    row(Row::suspend_over, "there were too few nodes for too long");
    return end(exit_too_few, Phase::done, answer_.reason);
  }
  if (static_cast<int>(usable().size()) < limits_.fewest) return wait_suspended();
  row(Row::suspend_tries, "the path between nodes is tried again");
  recover();
}

}  // namespace troupe::actors::reconciler
