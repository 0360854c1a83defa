#include "actors/reaction.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/seconds.h"

namespace troupe::actors::reconciler {
namespace {

constexpr int exit_too_few = 6;
constexpr int exit_deposed = 76;
constexpr std::size_t names_that_poison = 2;

std::string number(std::int64_t n) { return std::to_string(n); }

std::string seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", in_seconds(time));
  return text.data();
}

}  // namespace

Answer Reaction::to(const Event& event) {
  if (!std::holds_alternative<JournalFailed>(event)) state_.journal_failed.reset();
  const bool is_over = state_.phase == Phase::done || state_.phase == Phase::halted;
  if (const auto* attached = std::get_if<Attached>(&event); attached && is_over) {
    row(Row::of_the_past, "the run is over");
    order(Reject{attached->life, "the run is over"});
  } else if (!is_over) {
    std::visit([this](const auto& one) { on(one); }, event);
  }
  answer_.state = std::move(state_);
  return std::move(answer_);
}

// The beginning.

void Reaction::on(const JournalRead& read) {
  if (state_.phase != Phase::boot) return;
  state_.strikes = transport::Strikes(limits_.strikes);
  state_.begun = now_;
  if (read.health == JournalRead::Health::damaged) {
    row(Row::boot_damaged, "the journal is damaged: what was decided cannot be known");
    return end(exit_failed, Phase::halted, answer_.reason);
  }
  const auto found = remember(read.records);
  state_.term = found.term + 1;
  state_.epoch = found.epoch;
  // Nodes remember saves of earlier heads that were given up.
  state_.last_save = state_.term << 32;
  state_.saved = read.saved;
  if (found.has_ended) {
    row(Row::boot_again, "the run has ended: " + found.why);
    return end(0, Phase::done, found.why);
  }
  record(Record::Kind::term);
  if (read.health == JournalRead::Health::torn)
    row(Row::boot_torn, "the last record of the journal was torn, and nobody was told of it");
  state_.phase = Phase::gather;
  if (found.epoch == 0) {
    row(Row::boot_fresh, "a new run");
    return set_phase_timer(limits_.start_patience);
  }
  row(Row::boot_again, "term " + number(static_cast<std::int64_t>(state_.term)) +
                           " of a run whose newest epoch is " +
                           number(static_cast<std::int64_t>(state_.epoch)));
  if (found.is_in_force) {
    state_.plan.members = found.members;
    for (std::size_t i = 0; i < found.members.size(); ++i)
      state_.led_before.emplace(found.members[i], found.names[i]);
    state_.line = state_.decided = found.line;
  }
  set_phase_timer(limits_.gather_patience);
}

// Nodes.

void Reaction::on(const Attached& attached) {
  if (state_.phase == Phase::boot) return;
  if (attached.term > state_.term) return on(Deposed{attached.term});
  const auto older = std::ranges::find_if(state_.nodes, [&](const auto& entry) {
    return entry.second.name == attached.name && entry.first != attached.life;
  });
  if (older != state_.nodes.end()) {
    const Life gone = older->first;
    lose_from(gone, "it came back as another process");
    // Where the news of this one is late it was the other one that came after it.
    order(Reject{gone, "another process has its name"});
  }

  const bool is_new = state_.nodes.try_emplace(attached.life, Node{attached.name}).second;
  if (is_new) state_.changes.push_back(now_);
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
      // It had lost its connection before it heard of it.
      if (is_member(attached.life) && !plays)
        return order(Activate{state_.epoch, {attached.life}, state_.line});
      return consider_switch();
    case Phase::recover:
      row(Row::recover_merges, attached.name + " came while the run recovers");
      if (state_.waits_for.contains(attached.life)) order(Freeze{state_.epoch, {attached.life}});
      return;
    case Phase::suspend:
      if (static_cast<int>(usable().size()) < limits_.fewest)
        return row(Row::suspend_waits, "there are still too few nodes");
      row(Row::suspend_enough, "there are enough nodes again");
      return recover();
    case Phase::boot:
    case Phase::halted:
    case Phase::done:
      return;
  }
}

void Reaction::on(const Lost& lost) { lose_from(lost.life, lost.why); }

/// A node is there, for a head that has begun just now.
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
    return row(Row::gather_waits, number(static_cast<std::int64_t>(state_.led_before.size())) +
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

/// The epoch of an earlier head cannot be gone on with; those who have not come yet may still do.
void Reaction::break_what_was_played() {
  state_.is_broken = true;
  if (state_.led_before.empty()) recover();
}

/// A node is gone: what that means depends on what is under way.
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
      // Else it waits for a time, which no loss makes longer.
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

/// It may be late only, and what a loss would ask for is foreseen for all (foresight.h).
void Reaction::on(const Suspected& suspected) {
  if (state_.phase != Phase::run || !is_member(suspected.life)) return;
  row(Row::run_suspect, name_of(suspected.life) + ": " + suspected.why);
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
  // The step that is open, one more if the boundary was just missed, and the save.
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

void Reaction::on(const Slow& slow) {
  if (!is_member(slow.life)) return;
  row(Row::run_slow, name_of(slow.life) + " is slow: " + slow.why);
  order(Warn{answer_.reason});
}

// From a plan to its being in force.

void Reaction::on(const PlanMade& made) {
  if (made.number != state_.plan_number) return;
  if (state_.phase == Phase::plan) {
    if (!made.choice) {
      row(Row::plan_none, "no plan fits the nodes that are there: " + made.why);
      order(Warn{answer_.reason});
      // There may be others than the planner was told of.
      return take_whoever_is_there() || usable() != state_.planned_for ? plan_or_suspend()
                                                                       : suspend();
    }
    row(Row::plan_ready, made.choice->text);
    return prepare(*made.choice);
  }
  if (state_.phase != Phase::run || !state_.plans_aside) return;
  state_.plans_aside = false;
  if (!made.choice || !pays(state_, *made.choice, now_, limits_))
    return row(Row::run_not_better, "the plan stays: another one does not pay");
  row(Row::run_better, "at the next save point: " + made.choice->text);
  state_.better = *made.choice;
  ask_save_point();
}

void Reaction::on(const Prepared& prepared) {
  if (state_.phase != Phase::prepare || prepared.epoch != state_.epoch) return;
  if (state_.waits_for.erase(prepared.life) == 0) return;
  if (!state_.waits_for.empty())
    return row(Row::prepared_some, name_of(prepared.life) + " is prepared");
  row(Row::prepared_all, "all nodes of the plan are prepared");
  order(FindLine{state_.epoch});
  set_phase_timer(limits_.load_patience);
}

void Reaction::on(const LineFound& found) {
  if (state_.phase != Phase::prepare || found.epoch != state_.epoch) return;
  if (!state_.waits_for.empty()) return;
  state_.line = std::max(state_.line, found.step);
  row(Row::line_found, "it goes on from step " + number(state_.line));
  load();
}

void Reaction::on(const PrepareFailed& failed) {
  if (state_.phase != Phase::prepare || failed.epoch != state_.epoch) return;
  if (!is_member(failed.life)) return;
  row(Row::prepare_failed, name_of(failed.life) + " cannot prepare: " + failed.why);
  pass_over({failed.life}, answer_.reason);
}

void Reaction::on(const Loaded& loaded) {
  if (state_.phase != Phase::load || loaded.epoch != state_.epoch) return;
  // The state before was bad for others: it has not read this one yet.
  if (loaded.step != state_.line) return;
  if (state_.waits_for.erase(loaded.life) == 0) return;
  state_.weights[loaded.life] = loaded.weights;
  if (!state_.waits_for.empty())
    return row(Row::loaded_some, name_of(loaded.life) + " has its state");
  if (const auto odd = odd_readers(); !odd.empty()) {
    row(Row::load_differs, name_of(odd.front()) + " has read other weights than the others");
    if (2 * odd.size() < state_.weights.size()) return pass_over(odd, answer_.reason);
    // Nobody can say whose are right.
    return on(LoadFailed{odd.front(), loaded.epoch, state_.line, LoadFailed::Cause::checkpoint,
                         answer_.reason});
  }
  row(Row::loaded_all, "the plan is in force from step " + number(state_.line) + " on");
  activate();
}

void Reaction::on(const LoadFailed& failed) {
  if (state_.phase != Phase::load || failed.epoch != state_.epoch) return;
  if (failed.step != state_.line || !is_member(failed.life)) return;
  if (failed.cause == LoadFailed::Cause::node) {
    row(Row::load_failed_node, name_of(failed.life) + " cannot load: " + failed.why);
    return pass_over({failed.life}, answer_.reason);
  }
  row(Row::load_failed_checkpoint,
      "the state of step " + number(failed.step) + " is bad: " + failed.why);
  order(Warn{answer_.reason});
  const bool was_in_memory = failed.step > newest_saved();
  std::erase(state_.saved, failed.step);
  if (!was_in_memory && state_.saved.empty())
    return end(exit_failed, Phase::halted, answer_.reason + "; there is none before it");
  state_.line = newest_saved();
  load();
}

void Reaction::on(const Frozen& frozen) {
  if (frozen.epoch != state_.epoch) return;
  // Nobody has told it to: it could not go on, or an earlier head has told it after this one came.
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

// Steps and saves.

void Reaction::on(const StepDecided& decided) {
  if (decided.epoch != state_.epoch || decided.step <= state_.decided) return;
  if (state_.phase != Phase::run) return;
  state_.decided = decided.step;
  state_.futile = 0;
  state_.failed_steps.erase(state_.failed_steps.begin(),
                            state_.failed_steps.lower_bound(decided.step));
  row(Row::run_decided, "step " + number(decided.step) + " is done");
}

void Reaction::on(const StepFailed& failed) {
  // While a head gathers those who play, one of them may cease to.
  const bool is_played = state_.phase == Phase::run || state_.phase == Phase::gather;
  if (!is_played || failed.epoch != state_.epoch || !is_member(failed.life)) return;
  const std::string text =
      name_of(failed.life) + ": step " + number(failed.step) + ": " + failed.why;
  auto& names = state_.failed_steps[failed.step];
  names.insert(name_of(failed.life));
  if (names.size() >= names_that_poison) {
    row(Row::step_poisoned, text + ": it fails wherever it is played");
    give_up_epoch(text);
    return end(exit_failed, Phase::halted, answer_.reason);
  }
  row(Row::step_failed, text);
  strike(failed.life, text);
  set_aside(failed.life);
  // Its memory is suspect: where it can be, it is restarted, and comes back as another life.
  order(Retire{failed.life, text});
  state_.phase == Phase::gather ? break_what_was_played() : recover();
}

void Reaction::on(const SavePoint& point) {
  if (state_.phase != Phase::run || point.epoch != state_.epoch) return;
  // Nobody holds there any more.
  if (point.step < state_.decided) return;
  if (!state_.saving) {
    row(Row::save_begins, "step " + number(point.step) + " is to be saved");
    return save(point.step);
  }
  row(Row::save_still_goes_on, "step " + number(point.step) + " is not saved: the save of step " +
                                   number(state_.saving->step) + " still goes on");
  // Where the boundary is needed, all hold until that save has ended, and this one is asked for.
  if (point.step >= limits_.steps || wants_boundary()) return;
  order(GoOn{state_.epoch, point.step});
  order(Warn{answer_.reason});
}

void Reaction::on(const ShardsWritten& written) {
  if (!state_.saving || written.save != state_.saving->save) return;
  row(Row::save_written, "all parts of step " + number(state_.saving->step) + " are written");
  order(CommitSave{state_.saving->save, state_.saving->step});
}

void Reaction::on(const Saved& saved) {
  // A head may have found newer ones that turn out to be bad, so this may be the oldest.
  const auto newer = std::ranges::lower_bound(state_.saved, saved.step);
  if (newer != state_.saved.end() && *newer == saved.step) return;
  const bool is_oldest = newer == state_.saved.begin();
  state_.saved.insert(newer, saved.step);
  if (!is_oldest && std::ssize(state_.saved) > limits_.keep)
    state_.saved.erase(state_.saved.begin());
  record(Record::Kind::saved).step = saved.step;
  row(Row::save_complete, "step " + number(saved.step) + " is saved");
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

// Orders from outside, and what befalls the head.

void Reaction::on(const StopAsked&) {
  state_.is_stopping = true;
  row(Row::stop_asked, "somebody asked the run to stop");
  switch (state_.phase) {
    case Phase::run:
      return ask_save_point();
    case Phase::boot:
    case Phase::gather:
    case Phase::suspend:
      row(Row::stop_done, "it stops after step " + number(state_.decided));
      return end(exit_preempted, Phase::done, answer_.reason);
    case Phase::plan:
    case Phase::prepare:
    case Phase::load:
    case Phase::recover:
    case Phase::halted:
    case Phase::done:
      return;
  }
}

void Reaction::on(const JournalFailed& failed) {
  if (!state_.journal_failed) {
    state_.journal_failed = now_;
    order(Warn{"the journal cannot be written: " + failed.why +
               "; training goes on, and nothing is decided"});
  }
  if (now_ - *state_.journal_failed < limits_.journal_patience)
    return row(Row::journal_failed, failed.why);
  row(Row::journal_over, "the journal could not be written for too long: " + failed.why);
  order(Abort{state_.epoch, everybody()});
  end(exit_failed, Phase::halted, answer_.reason);
}

void Reaction::on(const Deposed& deposed) {
  if (deposed.term <= state_.term) return;
  row(Row::deposed,
      "a head of term " + number(static_cast<std::int64_t>(deposed.term)) + " leads the run");
  end(exit_deposed, Phase::done, answer_.reason);
}

void Reaction::on(const Timeout& timeout) {
  if (state_.saving && timeout.timer == state_.save_timer)
    return save_failed("it was not written in time");
  if (timeout.timer != state_.timer || timeout.timer == 0) return;
  switch (state_.phase) {
    case Phase::gather:
      row(Row::gather_over, "those who have not come are not waited for any longer");
      return recover();
    case Phase::plan:
      row(Row::plan_late, "the planner is late: all nodes that are there get a part");
      ++state_.plan_number;
      return prepare({usable(), 0, "all nodes that are there"});
    case Phase::prepare:
      row(Row::prepare_failed, state_.waits_for.empty()
                                   ? "nobody could say in time what the nodes have in memory"
                                   : "not all nodes have prepared in time");
      return pass_over({state_.waits_for.begin(), state_.waits_for.end()},
                       "it has not prepared within " + seconds(limits_.prepare_patience));
    case Phase::load:
      row(Row::load_failed_node, "not all nodes have loaded in time");
      return pass_over({state_.waits_for.begin(), state_.waits_for.end()},
                       "it has not loaded within " + seconds(limits_.load_patience));
    case Phase::recover:
      if (state_.waits_for.empty()) return plan_or_suspend();
      row(Row::recover_waits, "who has not stopped by now is dead");
      for (const Life life : std::set<Life>(state_.waits_for)) {
        lose(life, "it did not say in time that it has stopped");
        order(Reject{life, "it did not say in time that it has stopped: it is another life now"});
      }
      return go_on_if_all_frozen();
    case Phase::suspend:
      row(Row::suspend_over, "there were too few nodes for too long");
      return end(exit_too_few, Phase::done, answer_.reason);
    case Phase::boot:
    case Phase::run:
    case Phase::halted:
    case Phase::done:
      return;
  }
}

}  // namespace troupe::actors::reconciler
