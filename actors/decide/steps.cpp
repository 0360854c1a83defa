#include <algorithm>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
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
  row(Row::step_done, "step " + std::to_string(done.step) + " is done");
}

/// No attempt begins after a step that the ledger may not have: a head that died then would find no
/// state that its ledger knows.
void Reaction::on(const StepEntered& entered) {
  // It may be told while no attempt plays, which is 0.
  if (entered.attempt != 0 && entered.attempt != state_.attempt) return;
  if (entered.step <= state_.decided) state_.entered = std::max(state_.entered, entered.step);
}

/// The step is not done, so no state after it counts. The next attempt begins before it.
void Reaction::on(const SpikeFound& found) {
  if (state_.phase != Phase::run || found.attempt != state_.attempt) return;
  const std::string what = "step " + std::to_string(found.step) + ": " + found.why;
  if (!found.ends.empty()) {
    row(Row::spike_ends, what + " (given up: " + found.ends + ")");
    return end_failed(answer_.reason);
  }
  row(Row::spike_found, what);
  order(SkipStep{found.step});
}

void Reaction::on(const StepSkipped& skipped) {
  if (state_.phase != Phase::run || skipped.attempt != state_.attempt) return;
  row(Row::step_skipped, "the samples of step " + std::to_string(skipped.step) + " are left out");
  leave_attempt();  // The supervisor ends the players.
}

void Reaction::on(const Saved& saved) {
  if (state_.saving == saved.step) state_.saving.reset();
  remember_saved(saved.step);
  answer_boundary();
}

void Reaction::remember_saved(std::int64_t step) {
  // Newer checkpoints may have turned out bad, so this one may be the oldest.
  const auto newer = std::ranges::lower_bound(state_.saved, step);
  if (newer != state_.saved.end() && *newer == step) return;
  const bool is_oldest = newer == state_.saved.begin();
  state_.saved.insert(newer, step);
  state_.was_ever_saved = true;
  if (!is_oldest && std::ssize(state_.saved) > limits_.keep)
    state_.saved.erase(state_.saved.begin());
  row(Row::saved, "step " + std::to_string(step) + " is saved");
}

void Reaction::on(const SaveFailed& failed) {
  if (state_.saving == failed.step) state_.saving.reset();
  state_.unsaved = {failed.step, failed.why};
  row(Row::save_failed, "step " + std::to_string(failed.step) + " was not saved: " + failed.why);
  answer_boundary();
}

/// Returns whether the state after a step needs no save.
bool Reaction::is_saved(std::int64_t step) const {
  return step == 0 || std::ranges::binary_search(state_.saved, step);
}

}  // namespace troupe::actors::decide
