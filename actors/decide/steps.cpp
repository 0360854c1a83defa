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
