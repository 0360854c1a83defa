#include <algorithm>
#include <utility>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {

void Reaction::on(const PlanMade& made) {
  if (made.number != state_.plan_number || state_.phase != Phase::plan) return;
  if (!made.choice) {
    row(Row::plan_none, "no plan fits the connected nodes: " + made.why);
    order(Warn{answer_.reason});
    // Nodes may have joined since the planner was asked.
    return take_whoever_is_there() || usable() != state_.planned_for ? plan_or_suspend()
                                                                     : suspend();
  }
  row(Row::plan_ready, made.choice->text);
  prepare(*made.choice, made.attempt);
}

void Reaction::prepare(PlanChoice choice, std::uint64_t attempt) {
  state_.attempt = std::max(state_.attempt + 1, attempt);
  state_.is_in_head = true;
  state_.plan = std::move(choice);
  state_.phase = Phase::prepare;
  state_.kept.clear();
  state_.waits_for = {state_.plan.members.begin(), state_.plan.members.end()};
  auto& written = record(Record::Kind::planned, state_.plan.text);
  written.lives = state_.plan.members;
  for (const Life life : written.lives) written.names.push_back(name_of(life));
  order(Prepare{state_.attempt, state_.plan});
  set_phase_timer(limits_.prepare_patience);
}

void Reaction::on(const Prepared& prepared) {
  if (state_.phase != Phase::prepare || prepared.attempt != state_.attempt) return;
  if (state_.waits_for.erase(prepared.life) == 0) return;
  state_.kept[prepared.life] = prepared.kept;
  if (!state_.waits_for.empty())
    return row(Row::prepared_some, name_of(prepared.life) + " is prepared");
  row(Row::prepared_all, "all nodes of the plan are prepared");
  find_sources();
  load();
}

void Reaction::on(const PrepareFailed& failed) {
  if (state_.phase != Phase::prepare || failed.attempt != state_.attempt) return;
  if (!is_member(failed.life)) return;
  fail(Row::prepare_failed, {failed.life}, failed.why);
}

void Reaction::find_sources() {
  std::vector<std::vector<KeptStep>> kept;
  for (const Life life : state_.plan.members) kept.push_back(std::move(state_.kept[life]));
  state_.kept.clear();
  state_.sources =
      sources_of({kept, state_.plan.owners, state_.saved, state_.entered, state_.was_ever_saved});
}

/// Loads the best source that is left.
void Reaction::load() {
  if (state_.sources.empty())
    return end_failed(answer_.reason +
                      "; no good checkpoint is left: move the damaged ones away to "
                      "begin again");
  const auto& source = state_.sources.front();
  state_.phase = Phase::load;
  state_.line = source.step;
  order(Load{state_.attempt, source});
  set_phase_timer(limits_.load_patience);
}

void Reaction::on(const Loaded& loaded) {
  if (state_.phase != Phase::load || loaded.attempt != state_.attempt) return;
  // An earlier source, which turned out bad.
  if (loaded.step != state_.line) return;
  row(Row::loaded, "the plan is in force from step " + std::to_string(state_.line) + " on");
  record(Record::Kind::begun).step = state_.line;
  state_.phase = Phase::run;
  state_.timer = 0;
  state_.decided = state_.entered = state_.line;
  state_.furthest = std::max(state_.furthest, state_.line);
  state_.did_new_step = false;
  ++state_.futile;  // Reset when it does a new step.
  order(Begin{state_.attempt, state_.line});
  free_passed_over();
  state_.takes_all = false;
}

void Reaction::on(const LoadFailed& failed) {
  if (state_.phase != Phase::load || failed.attempt != state_.attempt) return;
  if (failed.step != state_.line) return;
  if (failed.cause == LoadFailed::Cause::node) {
    if (!is_member(failed.life)) return;
    return fail(Row::load_failed_node, {failed.life}, failed.why);
  }
  row(Row::load_failed_source,
      "the state of step " + std::to_string(failed.step) + " is bad: " + failed.why);
  order(Warn{answer_.reason});
  if (state_.sources.front().from == StateSource::From::checkpoint)
    std::erase(state_.saved, failed.step);
  state_.sources.erase(state_.sources.begin());
  load();
}

/// Ends an attempt that has not begun.
void Reaction::give_up_attempt(const std::string& why) {
  record(Record::Kind::aborted, why);
  if (!ends_by_lost_path()) {
    ++state_.futile;
    if (!state_.futile_since) state_.futile_since = now_;
  }
  recover();
}

}  // namespace troupe::actors::decide
