#include <algorithm>
#include <utility>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
namespace {

constexpr std::size_t everywhere = 2;  // Nodes.

}  // namespace

void Reaction::on(const StepDone& done) {
  if (done.attempt != state_.attempt || done.step <= state_.decided) return;
  // The supervisor may have finished a step before it heard that the attempt ends.
  const bool is_ending = state_.phase == Phase::recover || state_.phase == Phase::plan ||
                         state_.phase == Phase::suspend;
  if (state_.phase != Phase::run && !is_ending) return;
  state_.decided = done.step;
  if (!is_ending) state_.suspended_until.reset();
  std::erase_if(state_.lost_pairs, [&](const auto& entry) {
    return entry.second.attempt != state_.attempt && is_member(entry.first.first) &&
           is_member(entry.first.second);
  });
  if (done.step > state_.furthest) {
    state_.furthest = done.step;
    state_.did_new_step = true;
    state_.futile = state_.futile_near = 0;
    state_.futile_since.reset();
  }
  state_.failed_steps.erase(state_.failed_steps.begin(),
                            state_.failed_steps.lower_bound(done.step));
  row(Row::step_done, "step " + std::to_string(done.step) + " is done");
}

void Reaction::on(const PlayerFailed& failed) {
  if (state_.phase == Phase::boot || failed.attempt != state_.attempt) return;
  const bool lives = failed.name.empty();
  const std::string name = lives ? name_of(failed.life) : failed.name;
  if (name.empty() || (lives && !is_member(failed.life))) return;
  const std::string text = name + ": step " + std::to_string(failed.step) + ": " + failed.why;
  auto& names = state_.failed_steps[failed.step][failed.why];
  names.insert(name);
  if (names.size() >= everywhere) {
    row(Row::fails_everywhere, text + ": it fails in the same way wherever it is played");
    if (state_.is_in_head) order(EndAttempt{state_.attempt});
    return end(exit_failed, answer_.reason);
  }
  row(Row::player_failed, text);
  const bool is_under_way = state_.phase == Phase::prepare || state_.phase == Phase::load;
  if (is_under_way && lives) return blame({failed.life}, text);
  strike(name, text);
  if (!lives) return;  // The run recovers when the node's loss is reported.
  pass_over(failed.life);
  if (state_.phase == Phase::run || state_.phase == Phase::plan) recover();
}

void Reaction::on(const Saved& saved) {
  // Newer checkpoints may have turned out bad, so this one may be the oldest.
  const auto newer = std::ranges::lower_bound(state_.saved, saved.step);
  if (newer != state_.saved.end() && *newer == saved.step) return;
  const bool is_oldest = newer == state_.saved.begin();
  state_.saved.insert(newer, saved.step);
  state_.was_ever_saved = true;
  if (!is_oldest && std::ssize(state_.saved) > limits_.keep)
    state_.saved.erase(state_.saved.begin());
  row(Row::saved, "step " + std::to_string(saved.step) + " is saved");
}

}  // namespace troupe::actors::decide
