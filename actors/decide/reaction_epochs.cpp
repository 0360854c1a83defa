#include <algorithm>
#include <map>
#include <utility>

#include "actors/decide/reaction.h"

namespace troupe::actors::reconciler {

void Reaction::on(const PlanMade& made) {
  if (made.number != state_.plan_number) return;
  if (state_.phase == Phase::plan) {
    if (!made.choice) {
      row(Row::plan_none, "no plan fits the connected nodes: " + made.why);
      order(Warn{answer_.reason});
      // Nodes may have joined since the planner was asked.
      return take_whoever_is_there() || usable() != state_.planned_for ? plan_or_suspend()
                                                                       : suspend();
    }
    row(Row::plan_ready, made.choice->text);
    return prepare(*made.choice, made.attempt);
  }
  if (state_.phase != Phase::run || !state_.plans_aside) return;
  state_.plans_aside = false;
  if (!made.choice || !pays(state_, *made.choice, now_, limits_))
    return row(Row::run_not_better, "the plan stays: a switch to another one does not pay");
  row(Row::run_better, "at the next save point: " + made.choice->text);
  state_.better = *made.choice;
  ask_save_point();
}

void Reaction::prepare(PlanChoice choice, std::uint64_t attempt) {
  state_.epoch = std::max(state_.epoch + 1, attempt);
  state_.plan = std::move(choice);
  state_.better.reset();
  state_.phase = Phase::prepare;
  state_.kept.clear();
  state_.waits_for = {state_.plan.members.begin(), state_.plan.members.end()};
  auto& written = record(Record::Kind::epoch, state_.plan.text);
  written.lives = state_.plan.members;
  for (const Life life : written.lives) written.names.push_back(name_of(life));
  order(Prepare{state_.epoch, state_.plan});
  set_phase_timer(limits_.prepare_patience);
}

void Reaction::on(const Prepared& prepared) {
  if (state_.phase != Phase::prepare || prepared.epoch != state_.epoch) return;
  if (state_.waits_for.erase(prepared.life) == 0) return;
  state_.kept[prepared.life] = prepared.kept;
  if (!state_.waits_for.empty())
    return row(Row::prepared_some, name_of(prepared.life) + " is prepared");
  row(Row::prepared_all, "all nodes of the plan are prepared");
  find_sources();
  load();
}

void Reaction::on(const PrepareFailed& failed) {
  if (state_.phase != Phase::prepare || failed.epoch != state_.epoch) return;
  if (!is_member(failed.life)) return;
  row(Row::prepare_failed, name_of(failed.life) + " cannot prepare: " + failed.why);
  pass_over({failed.life}, answer_.reason);
}

void Reaction::find_sources() {
  std::vector<std::vector<KeptStep>> kept;
  for (const Life life : state_.plan.members) kept.push_back(std::move(state_.kept[life]));
  state_.kept.clear();
  state_.sources =
      sources_of({kept, state_.plan.owners, state_.saved, state_.decided, state_.was_ever_saved});
}

/// Loads the best source that is left.
void Reaction::load() {
  if (state_.sources.empty())
    return end(exit_failed, Phase::halted,
               answer_.reason +
                   "; no good checkpoint is left: move the damaged ones away to begin "
                   "again");
  const auto& source = state_.sources.front();
  state_.phase = Phase::load;
  state_.line = source.step;
  state_.weights.clear();
  state_.waits_for = {state_.plan.members.begin(), state_.plan.members.end()};
  order(Load{state_.epoch, state_.plan.members, source});
  set_phase_timer(limits_.load_patience);
}

void Reaction::on(const Loaded& loaded) {
  if (state_.phase != Phase::load || loaded.epoch != state_.epoch) return;
  // This node answers for an earlier state, which turned out bad on other nodes.
  if (loaded.step != state_.line) return;
  if (state_.waits_for.erase(loaded.life) == 0) return;
  state_.weights[loaded.life] = loaded.weights;
  if (!state_.waits_for.empty())
    return row(Row::loaded_some, name_of(loaded.life) + " has its state");
  if (const auto odd = odd_readers(); !odd.empty()) {
    row(Row::load_differs, name_of(odd.front()) + " has read other weights than the others");
    if (2 * odd.size() < state_.weights.size()) return pass_over(odd, answer_.reason);
    // There is no clear majority, so the state itself is suspect.
    return on(LoadFailed{odd.front(), loaded.epoch, state_.line, LoadFailed::Cause::checkpoint,
                         answer_.reason});
  }
  row(Row::loaded_all, "the plan is in force from step " + std::to_string(state_.line) + " on");
  activate();
}

/// Returns the nodes whose digest differs from the most frequent one.
std::vector<Life> Reaction::odd_readers() const {
  std::map<std::string, int> readers;
  for (const auto& [life, weights] : state_.weights) ++readers[weights];
  const auto most =
      std::ranges::max_element(readers, {}, [](const auto& entry) { return entry.second; });
  std::vector<Life> odd;
  for (const auto& [life, weights] : state_.weights)
    if (weights != most->first) odd.push_back(life);
  return odd;
}

void Reaction::on(const LoadFailed& failed) {
  if (state_.phase != Phase::load || failed.epoch != state_.epoch) return;
  if (failed.step != state_.line) return;
  if (failed.cause == LoadFailed::Cause::node) {
    if (!is_member(failed.life)) return;
    row(Row::load_failed_node, name_of(failed.life) + " cannot load: " + failed.why);
    return pass_over({failed.life}, answer_.reason);
  }
  row(Row::load_failed_checkpoint,
      "the state of step " + std::to_string(failed.step) + " is bad: " + failed.why);
  order(Warn{answer_.reason});
  if (state_.sources.front().from == StateSource::From::checkpoint)
    std::erase(state_.saved, failed.step);
  state_.sources.erase(state_.sources.begin());
  load();
}

void Reaction::activate() {
  record(Record::Kind::active).step = state_.line;
  state_.phase = Phase::run;
  state_.timer = 0;
  state_.decided = state_.line;
  state_.furthest = std::max(state_.furthest, state_.line);
  state_.did_new_step = false;
  ++state_.futile;  // Reset when it does a new step.
  order(Activate{state_.epoch, state_.plan.members, state_.line});
  free_passed_over();
  state_.takes_all = false;
  release_idle();
  wants_boundary() ? ask_save_point() : consider_switch();
}

/// Asks for a plan that includes unused nodes.
void Reaction::consider_switch() {
  const auto nodes = usable();
  if (state_.phase != Phase::run || state_.better) return;
  if (static_cast<int>(nodes.size()) < limits_.fewest) return;
  if (std::ranges::all_of(nodes, [this](Life life) { return is_member(life); })) return;
  state_.plans_aside = true;
  order(MakePlan{++state_.plan_number, nodes});
}

void Reaction::give_up_epoch(const std::string& why) {
  record(Record::Kind::aborted, why);
  std::vector<Life> alive;
  for (const Life life : state_.plan.members)
    if (state_.nodes.contains(life)) alive.push_back(life);
  order(Abort{state_.epoch, std::move(alive)});
  if (ends_by_lost_path()) return;
  ++state_.futile;
  if (!state_.futile_since) state_.futile_since = now_;
}

/// Excludes failed nodes from the next plan.
void Reaction::pass_over(const std::vector<Life>& failed, const std::string& why) {
  for (const Life life : failed) {
    strike(name_of(life), why);
    set_aside(life);
  }
  give_up_epoch(why);
  state_.waits_for.clear();
  go_on_if_all_frozen();
}

}  // namespace troupe::actors::reconciler
