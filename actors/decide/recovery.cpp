#include <algorithm>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
namespace {

constexpr Duration longest_back_off = std::chrono::minutes(1);

}  // namespace

/// Ends the attempt. The run restarts from the newest state when nothing of the attempt is left;
/// events in the meantime are merged into this recovery.
void Reaction::recover() {
  leave_attempt();
  if (!state_.is_in_head) return go_on();
  order(EndAttempt{state_.attempt});
}

void Reaction::leave_attempt() {
  if (state_.phase == Phase::run) {
    const bool is_new = state_.decided == state_.furthest;
    state_.fell = {state_.plan.members, is_new ? std::optional(state_.decided) : std::nullopt};
    count_attempt();
  }
  state_.phase = Phase::recover;
  state_.timer = 0;
  state_.boundary.reset();
  state_.waits_for_keepers = false;
  state_.waits_for.clear();
  state_.led_before.clear();
  ++state_.plan_number;
}

void Reaction::on(const AttemptEnded& ended) {
  if (ended.attempt != state_.attempt || !state_.is_in_head) return;
  state_.is_in_head = false;
  row(Row::attempt_ended, "nothing of the attempt is left");
  switch (state_.phase) {
    case Phase::prepare:
    case Phase::load:
      return give_up_attempt(answer_.reason);
    case Phase::run:
      return recover();
    case Phase::recover:
      return go_on();
    case Phase::boot:
    case Phase::gather:
    case Phase::plan:
    case Phase::suspend:
    case Phase::ended:
      return;
  }
}

/// Counts an attempt without a new step, and whether it came near the furthest step.
void Reaction::count_attempt() {
  if (state_.did_new_step) return;
  if (ends_by_lost_path()) {
    --state_.futile;
    return;
  }
  if (!state_.futile_since) state_.futile_since = now_;
  const bool is_near = 2 * (state_.decided - state_.line) >= state_.furthest - state_.line;
  if (is_near) ++state_.futile_near;
}

bool Reaction::ends_by_lost_path() const {
  return std::ranges::any_of(state_.lost_pairs, [this](const auto& entry) {
    return entry.second.attempt == state_.attempt && are_heard(entry.first);
  });
}

/// A lost node's pairs are deleted. If a node of a pair is not heard, the path may be whole.
bool Reaction::are_heard(const std::pair<Life, Life>& pair) const {
  return state_.nodes.at(pair.first).is_heard && state_.nodes.at(pair.second).is_heard;
}

bool Reaction::is_hopeless() const {
  if (state_.futile_near >= limits_.most_futile) return true;
  return state_.futile >= limits_.most_futile && state_.futile_since &&
         now_ - *state_.futile_since >= limits_.futile_time;
}

/// Makes the next plan, unless a reason is left to wait.
void Reaction::go_on() {
  if (state_.is_in_head) return;
  if (state_.is_stopping) {
    row(Row::stop_done, "it stops with the newest checkpoint");
    return end({End::How::stopped, 0, {}});
  }
  if (is_hopeless()) {
    row(Row::recover_hopeless,
        std::to_string(state_.futile) + " attempts in a row ended before step " +
            std::to_string(state_.furthest + 1) +
            " was done, which no attempt has done; given up (limits.futile_epochs + "
            "limits.strikes = " +
            std::to_string(limits_.most_futile) + ")");
    return end_failed(answer_.reason);
  }
  if (state_.futile >= limits_.futile_attempts) {
    row(Row::recover_futile, std::to_string(state_.futile) + " attempts came to nothing");
    order(Warn{answer_.reason});
    state_.phase = Phase::recover;
    const int doubled = std::min(state_.futile - limits_.futile_attempts, 10);
    return set_phase_timer(std::min<Duration>(limits_.back_off * (1 << doubled), longest_back_off));
  }
  if (const auto until = keepers_until()) {
    row(Row::recover_gathers, "silent nodes keep states that no other node has");
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
      const auto node = state_.nodes.find(life);
      is_there |= (node != state_.nodes.end() && node->second.is_heard) ||
                  (is_silent && silent->second.has_returned);
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
  if (static_cast<int>(usable().size()) < limits_.fewest) take_whoever_is_there();
  const auto nodes = usable();
  if (nodes.empty() || static_cast<int>(nodes.size()) < limits_.fewest) return suspend();
  state_.phase = Phase::plan;
  state_.planned_for = nodes;
  state_.timer = 0;
  order(MakePlan{++state_.plan_number, nodes});
}

/// Uses nodes that failed rather than none. Returns false if there are none.
bool Reaction::take_whoever_is_there() {
  const auto before = usable();
  free_passed_over();
  state_.takes_all = true;
  return usable() != before;
}

void Reaction::suspend() {
  row(Row::suspend_begins, "too few nodes: the run waits for more");
  state_.phase = Phase::suspend;
  state_.plan = {};
  if (!state_.suspended_until) state_.suspended_until = now_ + limits_.suspend_patience;
  const auto lost = std::ranges::find_if(
      state_.lost_pairs, [this](const auto& entry) { return are_heard(entry.first); });
  if (lost != state_.lost_pairs.end())
    order(Warn{"the run waits for a path between nodes, and tries it again and again: " +
               lost->second.why});
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
    row(Row::suspend_over, "too few nodes for too long");
    return end({End::How::failed, exit_too_few, answer_.reason});
  }
  if (static_cast<int>(usable().size()) < limits_.fewest) return wait_suspended();
  row(Row::suspend_tries, "the path between nodes is tried again");
  recover();
}

}  // namespace troupe::actors::decide
