#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
namespace {

std::string after(std::int64_t step) { return " after step " + std::to_string(step); }

}  // namespace

void Reaction::on(const AtBoundary& at) {
  if (state_.phase != Phase::run || at.attempt != state_.attempt) return;
  state_.boundary = Boundary{.step = at.step, .is_last = at.is_last, .is_save_due = at.is_save_due};
  answer_boundary();
}

void Reaction::on(const Collected& collected) {
  if (collected.attempt != state_.attempt || !state_.boundary) return;
  if (collected.step != state_.boundary->step) return;
  state_.boundary->is_collected = true;
  state_.boundary->is_busy = false;
  if (collected.is_written) state_.saving = collected.step;
  row(Row::save_collected, "the state" + after(collected.step) + " was put together");
  answer_boundary();
}

void Reaction::on(const ChangeAsked&) {
  ++state_.changes;
  row(Row::boundary_asked, "a change waits for a boundary");
  hold_or_release();
  answer_boundary();
}

void Reaction::on(const ChangesMade& made) {
  state_.changes -= made.count;
  hold_or_release();
  if (made.attempt != state_.attempt || state_.phase != Phase::run || !state_.boundary) return;
  if (made.begins_anew) {
    row(Row::change_made, "the run was changed" + after(state_.boundary->step));
    return leave_attempt();  // The supervisor ends the players.
  }
  row(Row::change_refused, "nothing was changed" + after(state_.boundary->step));
  state_.boundary->is_busy = false;
  answer_boundary();
}

void Reaction::on(const StopAsked& asked) {
  const bool is_playing = state_.phase == Phase::run;
  row(Row::stop_asked, asked.at_once ? "it was ordered to stop at once" : "it was ordered to stop");
  // Without players nothing can be finished, so the newest checkpoint is the result.
  if (asked.at_once || !is_playing)
    return end({End::How::stopped, 0, asked.at_once ? answer_.reason : std::string()});
  state_.is_stopping = true;
  state_.is_paused = false;
  hold_or_release();
  answer_boundary();
}

void Reaction::on(const PauseAsked& asked) {
  if (state_.is_paused == asked.is_paused) return;
  state_.is_paused = asked.is_paused;
  row(asked.is_paused ? Row::pause_begins : Row::pause_over,
      asked.is_paused ? "it was ordered to pause" : "it was ordered to go on");
  hold_or_release();
  answer_boundary();
}

void Reaction::on(const RunFailed& failed) {
  row(Row::run_failed, failed.why);
  end_failed(failed.why);
}

bool Reaction::wants_boundary() const {
  return state_.is_stopping || state_.is_paused || state_.changes > 0;
}

/// Rounds are held while somebody waits for a boundary.
void Reaction::hold_or_release() {
  if (state_.is_held == wants_boundary()) return;
  state_.is_held = !state_.is_held;
  order(HoldRounds{state_.is_held});
}

/// Answers the attempt that waits at a boundary, in this order: saves, changes, the end, and
/// further steps.
void Reaction::answer_boundary() {
  if (state_.phase != Phase::run || !state_.boundary || state_.boundary->is_busy) return;
  auto& at = *state_.boundary;
  const bool ends = at.is_last || state_.is_stopping;
  const bool changes = state_.changes > 0;
  // The end needs the state itself as well: its weights may be exported.
  const bool must_save =
      !at.is_collected && (at.is_save_due || ends || (changes && !is_saved(at.step)));
  // One save at a time: a slow disk must not fill the memory.
  if (state_.saving && (must_save || changes || ends))
    return row(Row::save_waits, "step " + std::to_string(*state_.saving) + " is being saved");
  if (must_save) {
    at.is_busy = true;
    row(Row::save_begins, "a save" + after(at.step));
    return order(Collect{at.step});
  }
  if (changes) {
    at.is_busy = true;
    row(Row::change_due, "changes" + after(at.step));
    return order(ApplyChanges{at.step});
  }
  if (ends) return end_at_boundary();
  if (state_.is_paused) return;
  const auto step = at.step;
  state_.boundary.reset();
  row(Row::boundary_passed, "training goes on" + after(step));
  order(PlayOn{step});
}

void Reaction::end_at_boundary() {
  const auto at = *state_.boundary;
  if (!is_saved(at.step)) {
    const auto why =
        state_.unsaved && state_.unsaved->step == at.step
            ? "step " + std::to_string(at.step) + " was not saved: " + state_.unsaved->why
            : "step " + std::to_string(at.step) + " was not saved";
    row(Row::run_failed, why);
    return end_failed(why);
  }
  row(at.is_last ? Row::run_done : Row::stop_done,
      at.is_last ? "all steps are done" : "it stops" + after(at.step));
  end({at.is_last ? End::How::done : End::How::stopped, 0, {}});
}

}  // namespace troupe::actors::decide
