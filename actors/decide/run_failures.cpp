#include <algorithm>
#include <utility>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
namespace {

constexpr std::size_t most_failures = 256;

}  // namespace

void Reaction::on(const PlayerFailed& failed) {
  if (state_.phase == Phase::boot || failed.attempt != state_.attempt) return;
  if (failed.life == 0) return fail(Row::player_failed, {}, failed.why);
  if (is_member(failed.life)) fail(Row::player_failed, {failed.life}, failed.why);
}

/// Counts a failure and ends the attempt. The next plan is without the nodes that failed. Failures
/// of an attempt after the first one follow from it.
void Reaction::fail(Row cause, const std::vector<Life>& lives, const std::string& why) {
  if (std::exchange(state_.failed_attempt, state_.attempt) == state_.attempt) return;
  if (state_.failures.size() == most_failures) state_.failures.erase(state_.failures.begin());
  state_.failures.push_back(
      {now_.time_since_epoch(), why, others_suffice(lives) ? name_of(lives.front()) : ""});
  const auto verdict = judge(state_.failures, limits_.failures);
  if (verdict.what != Verdict::What::try_again) {
    const bool is_again = verdict.what == Verdict::What::fails_again;
    const bool is_first = state_.failures.size() == 1;
    row(is_again ? Row::fails_again : Row::fails_too_often,
        is_first ? why : why + " (given up: " + verdict.reason + ")");
    return end_failed(answer_.reason);
  }
  row(cause, why);
  const bool is_kept = limits_.copies > 1;
  order(Warn{why + "; recovering from the newest " +
             (is_kept ? "state in memory: " : "checkpoint: ") + verdict.reason});
  for (const Life life : lives) {
    strike(name_of(life), why);
    pass_over(life);
  }
  if (state_.phase == Phase::prepare || state_.phase == Phase::load) return give_up_attempt(why);
  if (state_.phase == Phase::run || state_.phase == Phase::plan) recover();
}

/// Returns whether there are enough nodes without these.
bool Reaction::others_suffice(const std::vector<Life>& lives) const {
  auto others = usable();
  std::erase_if(others, [&](Life life) { return std::ranges::count(lives, life) > 0; });
  return !lives.empty() && std::ssize(others) >= limits_.fewest;
}

/// Judges the end of a node's process. The attempt may have ended before it, since channels may
/// report the loss earlier.
void Reaction::judge_crash(const NodeLost& lost) {
  const std::string name = name_of(lost.life);
  if (name.empty()) return;
  std::optional<std::int64_t> step;
  if (state_.phase == Phase::run) {
    if (is_member(lost.life) && state_.decided == state_.furthest) step = state_.decided;
  } else if (std::ranges::count(state_.fell.members, lost.life) > 0) {
    step = state_.fell.step;
  }
  const auto verdict = state_.crashes.judge(
      {now_.time_since_epoch(), step, name, *lost.signal, lost.why}, limits_.failures);
  if (verdict.what == Crashes::What::go_on) return;
  if (verdict.what == Crashes::What::without_node && others_suffice({lost.life})) {
    row(Row::node_crashes, "node " + name + " is not used for a while: " + verdict.reason);
    order(Warn{answer_.reason});
    return strike(name, verdict.reason);
  }
  if (!verdict.is_fault) return;
  row(Row::crashes_again,
      verdict.reason + " (given up: the same failure occurred twice at the same place)");
  end_failed(answer_.reason);
}

}  // namespace troupe::actors::decide
