#include <algorithm>
#include <utility>

#include "actors/decide/reaction.h"

namespace troupe::actors::reconciler {
namespace {

constexpr std::size_t names_that_poison = 2;

}  // namespace

void Reaction::on(const StepDecided& decided) {
  if (decided.epoch != state_.epoch || decided.step <= state_.decided) return;
  // The supervisor may have finished a step before it heard that the attempt ends.
  const bool is_ending = state_.phase == Phase::recover || state_.phase == Phase::plan ||
                         state_.phase == Phase::suspend;
  if (state_.phase != Phase::run && !is_ending) return;
  state_.decided = decided.step;
  if (!is_ending) state_.suspended_until.reset();
  std::erase_if(state_.lost_pairs, [&](const auto& entry) {
    return entry.second.epoch != state_.epoch && is_member(entry.first.first) &&
           is_member(entry.first.second);
  });
  if (decided.step > state_.furthest) {
    state_.furthest = decided.step;
    state_.did_new_step = true;
    state_.futile = state_.futile_near = 0;
    state_.futile_since.reset();
  }
  state_.failed_steps.erase(state_.failed_steps.begin(),
                            state_.failed_steps.lower_bound(decided.step));
  row(Row::run_decided, "step " + std::to_string(decided.step) + " is done");
}

void Reaction::on(const StepFailed& failed) {
  if (state_.phase == Phase::boot || failed.epoch != state_.epoch) return;
  const std::string name = failed.name.empty() ? name_of(failed.life) : failed.name;
  if (name.empty() || (failed.name.empty() && !is_member(failed.life))) return;
  const std::string text = name + ": step " + std::to_string(failed.step) + ": " + failed.why;
  auto& names = state_.failed_steps[failed.step][failed.why];
  names.insert(name);
  if (names.size() >= names_that_poison) {
    row(Row::step_poisoned, text + ": it fails in the same way wherever it is played");
    give_up_epoch(text);
    return end(exit_failed, Phase::halted, answer_.reason);
  }
  row(Row::step_failed, text);
  if (state_.phase == Phase::prepare || state_.phase == Phase::load)
    if (failed.name.empty()) return pass_over({failed.life}, text);
  strike(name, text);
  if (!failed.name.empty()) return;  // The run recovers when the node's loss is reported.
  switch (state_.phase) {
    case Phase::run:
    case Phase::gather:
    case Phase::plan:
      set_aside(failed.life);
      // Its memory is suspect: it should restart and come back with a new life.
      order(Retire{failed.life, text});
      return state_.phase == Phase::gather ? break_what_was_played() : recover();
    default:
      // The run recovers already, or waits for nodes.
      set_aside(failed.life);
      order(Retire{failed.life, text});
  }
}

void Reaction::ask_save_point() {
  if (!state_.saving) order(AskSavePoint{state_.epoch});
}

bool Reaction::wants_boundary() const {
  if (state_.is_stopping || state_.better) return true;
  return std::ranges::any_of(state_.plan.members, [this](Life life) {
    const auto found = state_.nodes.find(life);
    return found != state_.nodes.end() && found->second.use == Node::Use::leaving;
  });
}

void Reaction::on(const SavePoint& point) {
  if (state_.phase != Phase::run || point.epoch != state_.epoch) return;
  // No node holds at that step any more.
  if (point.step < state_.decided) return;
  if (!state_.saving) {
    row(Row::save_begins, "step " + std::to_string(point.step) + " is to be saved");
    return save(point.step);
  }
  row(Row::save_still_goes_on, "step " + std::to_string(point.step) +
                                   " is not saved: the save of step " +
                                   std::to_string(state_.saving->step) + " still goes on");
  // If a boundary is wanted, all hold until that save has ended; then this step is saved.
  if (point.step >= limits_.steps || wants_boundary()) return;
  order(GoOn{state_.epoch, point.step});
  order(Warn{answer_.reason});
}

void Reaction::save(std::int64_t step) {
  const bool is_end = step >= limits_.steps;
  if (!state_.saved.empty() && state_.saved.back() == step) return end_epoch_at_boundary();
  state_.saving = Saving{++state_.last_save, step,
                         is_end || wants_boundary() ? Meanwhile::hold : Meanwhile::go_on};
  order(Save{state_.saving->save, state_.epoch, step, state_.saving->meanwhile});
  state_.save_timer = ++state_.last_timer;
  order(SetTimer{state_.save_timer, limits_.save_patience});
}

void Reaction::on(const ShardsWritten& written) {
  if (!state_.saving || written.save != state_.saving->save) return;
  row(Row::save_written,
      "all parts of step " + std::to_string(state_.saving->step) + " are written");
  order(CommitSave{state_.saving->save, state_.saving->step});
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
  // A head lists the supervisor's saves, which have no number, when it begins.
  if (saved.save > 0) record(Record::Kind::saved).step = saved.step;
  row(Row::save_complete, "step " + std::to_string(saved.step) + " is saved");
  if (!state_.saving || saved.save != state_.saving->save) return;
  const Saving done = *std::exchange(state_.saving, std::nullopt);
  state_.failed_saves = 0;
  ++state_.saves_since_switch;
  if (done.meanwhile == Meanwhile::hold) return end_epoch_at_boundary();
  if (wants_boundary() || state_.decided >= limits_.steps) ask_save_point();
}

void Reaction::on(const SaveFailed& failed) {
  if (state_.saving && failed.save == state_.saving->save) save_failed(failed.why);
}

void Reaction::save_failed(const std::string& why) {
  const Saving failed = *state_.saving;
  abort_save();
  const std::string text = "step " + std::to_string(failed.step) + " was not saved: " + why;
  order(Warn{text});
  if (++state_.failed_saves < limits_.save_tries) {
    row(Row::save_failed, text);
    if (failed.meanwhile == Meanwhile::hold) return save(failed.step);
    // Nodes may hold that have not heard of the save.
    order(GoOn{state_.epoch, failed.step});
    return ask_save_point();
  }
  row(Row::save_given_up, text);
  state_.failed_saves = 0;
  state_.better.reset();
  if (failed.step >= limits_.steps || state_.is_stopping)
    return end(exit_failed, Phase::halted, text);
  order(GoOn{state_.epoch, failed.step});
  if (wants_boundary() || state_.decided >= limits_.steps) ask_save_point();
}

void Reaction::abort_save() {
  if (!state_.saving) return;
  order(AbortSave{state_.saving->save});
  state_.saving.reset();
}

/// All nodes hold at a saved step: apply what waited for that.
void Reaction::end_epoch_at_boundary() {
  const auto step = state_.saved.back();
  if (end_if_all_is_saved()) return;
  if (state_.is_stopping) {
    row(Row::stop_done, "it stops after step " + std::to_string(step) + ", which is saved");
    return end(exit_preempted, Phase::done, answer_.reason);
  }
  const auto can_play = usable();
  const auto is_usable = [&](Life life) { return std::ranges::count(can_play, life) > 0; };
  if (!std::ranges::all_of(state_.plan.members, is_usable)) {
    row(Row::drain_begins, "the run goes on without those who leave");
    return plan_or_suspend();
  }
  if (state_.better && std::ranges::all_of(state_.better->members, is_usable)) {
    row(Row::switch_begins, state_.better->text);
    state_.saves_since_switch = 0;
    return prepare(PlanChoice(*state_.better));
  }
  state_.better.reset();
  order(GoOn{state_.epoch, step});
}

/// An earlier head may have died before it recorded the end.
bool Reaction::end_if_all_is_saved() {
  if (newest_saved() < limits_.steps) return false;
  row(Row::run_done, "all steps are done and saved");
  record(Record::Kind::ended, "done").step = newest_saved();
  end(0, Phase::done, "done");
  return true;
}

}  // namespace troupe::actors::reconciler
