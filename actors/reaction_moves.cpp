#include <algorithm>
#include <utility>

#include "actors/reaction.h"

namespace troupe::actors::reconciler {
namespace {

constexpr Duration longest_back_off = std::chrono::minutes(1);
constexpr std::size_t most_changes = 1024;

}  // namespace

void Reaction::row(Row row, const std::string& reason) {
  answer_.rows.push_back(row);
  answer_.reason += (answer_.reason.empty() ? "" : "; ") + reason;
}

Record& Reaction::record(Record::Kind kind, const std::string& why) {
  answer_.records.push_back({kind, state_.term, state_.epoch, 0, {}, {}, why});
  return answer_.records.back();
}

void Reaction::set_phase_timer(Duration after) {
  state_.timer = ++state_.last_timer;
  order(SetTimer{state_.timer, after});
}

void Reaction::lose(Life life, const std::string& why) {
  const auto found = state_.nodes.find(life);
  if (found == state_.nodes.end()) return;
  auto& dead = record(Record::Kind::dead, why);
  dead.lives = {life};
  dead.names = {found->second.name};
  state_.nodes.erase(found);
  state_.waits_for.erase(life);
  state_.changes.push_back(now_);
  if (state_.changes.size() > most_changes) state_.changes.erase(state_.changes.begin());
}

/// Who fails too often gets no part for a while.
void Reaction::strike(Life life, const std::string& why) {
  const std::string name = name_of(life);
  if (name.empty()) return;
  record(Record::Kind::strike, why).names = {name};
  state_.strikes.strike(name, now_);
}

/// The next plan does without it.
void Reaction::set_aside(Life life) {
  const auto found = state_.nodes.find(life);
  if (found != state_.nodes.end() && found->second.use == Node::Use::free)
    found->second.use = Node::Use::passed_over;
}

/// All stop where they are; then it is known who is there, and the run begins again from its newest
/// checkpoint. What comes in meanwhile is merged into it.
void Reaction::recover() {
  state_.phase = Phase::recover;
  state_.led_before.clear();
  state_.is_broken = false;
  state_.better.reset();
  state_.plans_aside = false;
  ++state_.plan_number;
  abort_save();
  state_.waits_for.clear();
  for (const Life life : state_.plan.members) {
    const auto found = state_.nodes.find(life);
    // Who has failed has stopped.
    if (found != state_.nodes.end() && found->second.use != Node::Use::passed_over)
      state_.waits_for.insert(life);
  }
  if (state_.waits_for.empty()) return go_on_if_all_frozen();
  order(Freeze{state_.epoch, {state_.waits_for.begin(), state_.waits_for.end()}});
  set_phase_timer(limits_.inventory_patience);
}

void Reaction::go_on_if_all_frozen() {
  if (!state_.waits_for.empty()) return;
  if (state_.futile >= limits_.futile_epochs) {
    row(Row::recover_futile, std::to_string(state_.futile) + " epochs came to nothing");
    order(Warn{answer_.reason});
    state_.phase = Phase::recover;
    const int doubled = std::min(state_.futile - limits_.futile_epochs, 10);
    return set_phase_timer(std::min<Duration>(limits_.back_off * (1 << doubled), longest_back_off));
  }
  row(Row::recover_plans, "who is there is known");
  plan_or_suspend();
}

void Reaction::plan_or_suspend() {
  if (end_if_all_is_saved()) return;
  if (state_.is_stopping) {
    row(Row::stop_done, "it stops; what was done is in the newest checkpoint");
    return end(exit_preempted, Phase::done, answer_.reason);
  }
  if (static_cast<int>(usable().size()) < limits_.fewest) take_whoever_is_there();
  const auto nodes = usable();
  if (nodes.empty() || static_cast<int>(nodes.size()) < limits_.fewest) return suspend();
  state_.phase = Phase::plan;
  state_.plans_aside = false;
  state_.planned_for = nodes;
  order(MakePlan{++state_.plan_number, nodes});
  set_phase_timer(limits_.plan_patience);
}

/// Those who failed are better than none. False where there are no such.
bool Reaction::take_whoever_is_there() {
  const auto before = usable();
  free_passed_over();
  state_.takes_all = true;
  return usable() != before;
}

void Reaction::free_passed_over() {
  for (auto& [life, node] : state_.nodes)
    if (node.use == Node::Use::passed_over) node.use = Node::Use::free;
}

void Reaction::suspend() {
  row(Row::suspend_begins, "there are too few nodes: the run waits for more");
  state_.phase = Phase::suspend;
  state_.plan = {};
  release_idle();
  set_phase_timer(limits_.suspend_patience);
}

void Reaction::give_up_epoch(const std::string& why) {
  record(Record::Kind::aborted, why);
  std::vector<Life> alive;
  for (const Life life : state_.plan.members)
    if (state_.nodes.contains(life)) alive.push_back(life);
  order(Abort{state_.epoch, std::move(alive)});
  ++state_.futile;
}

/// Who has read otherwise than most.
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

/// They have no part in the next plan.
void Reaction::pass_over(const std::vector<Life>& failed, const std::string& why) {
  for (const Life life : failed) {
    strike(life, why);
    set_aside(life);
  }
  give_up_epoch(why);
  state_.waits_for.clear();
  go_on_if_all_frozen();
}

void Reaction::prepare(PlanChoice choice) {
  ++state_.epoch;
  state_.plan = std::move(choice);
  state_.better.reset();
  state_.phase = Phase::prepare;
  state_.line = newest_saved();
  state_.waits_for = {state_.plan.members.begin(), state_.plan.members.end()};
  auto& written = record(Record::Kind::epoch, state_.plan.text);
  written.lives = state_.plan.members;
  for (const Life life : written.lives) written.names.push_back(name_of(life));
  order(Prepare{state_.epoch, state_.plan});
  set_phase_timer(limits_.prepare_patience);
}

void Reaction::load() {
  state_.phase = Phase::load;
  // A save of the epoch before may have become complete meanwhile.
  state_.line = std::max(state_.line, newest_saved());
  state_.weights.clear();
  state_.waits_for = {state_.plan.members.begin(), state_.plan.members.end()};
  order(Load{state_.epoch, state_.plan.members, state_.line});
  set_phase_timer(limits_.load_patience);
}

void Reaction::activate() {
  record(Record::Kind::active).step = state_.line;
  state_.phase = Phase::run;
  state_.timer = 0;
  state_.decided = state_.line;
  ++state_.futile;  // Until a step of it is done.
  order(Activate{state_.epoch, state_.plan.members, state_.line});
  free_passed_over();
  state_.takes_all = false;
  release_idle();
  wants_boundary() ? ask_save_point() : consider_switch();
}

/// Asks for a plan with those who have no part yet.
void Reaction::consider_switch() {
  const auto nodes = usable();
  if (state_.phase != Phase::run || state_.better) return;
  if (static_cast<int>(nodes.size()) < limits_.fewest) return;
  if (std::ranges::all_of(nodes, [this](Life life) { return is_member(life); })) return;
  state_.plans_aside = true;
  order(MakePlan{++state_.plan_number, nodes});
}

void Reaction::ask_save_point() {
  if (!state_.saving) order(AskSavePoint{state_.epoch});
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

void Reaction::abort_save() {
  if (!state_.saving) return;
  order(AbortSave{state_.saving->save});
  state_.saving.reset();
}

/// A head may have been gone before it could write that down.
bool Reaction::end_if_all_is_saved() {
  if (newest_saved() < limits_.steps) return false;
  row(Row::run_done, "all steps are done and saved");
  record(Record::Kind::ended, "done").step = newest_saved();
  end(0, Phase::done, "done");
  return true;
}

/// All nodes hold, and the step that they are at is saved: what had to wait for that comes now.
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

void Reaction::save_failed(const std::string& why) {
  const Saving failed = *state_.saving;
  abort_save();
  const std::string text = "step " + std::to_string(failed.step) + " was not saved: " + why;
  order(Warn{text});
  if (++state_.failed_saves < limits_.save_tries) {
    row(Row::save_failed, text);
    if (failed.meanwhile == Meanwhile::hold) return save(failed.step);
    // Somebody may hold still who has not heard of the save.
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

/// Those who leave and have no part may go.
void Reaction::release_idle() {
  for (const auto& [life, node] : state_.nodes)
    if (node.use == Node::Use::leaving && !is_member(life))
      order(Retire{life, "it has no part in the run any more"});
}

void Reaction::end(int code, Phase phase, const std::string& why) {
  state_.phase = phase;
  state_.timer = 0;
  order(End{code, why});
}

bool Reaction::is_member(Life life) const {
  return std::ranges::count(state_.plan.members, life) > 0;
}

bool Reaction::wants_boundary() const {
  if (state_.is_stopping || state_.better) return true;
  return std::ranges::any_of(state_.plan.members, [this](Life life) {
    const auto found = state_.nodes.find(life);
    return found != state_.nodes.end() && found->second.use == Node::Use::leaving;
  });
}

std::vector<Life> Reaction::everybody() const {
  std::vector<Life> lives;
  for (const auto& [life, node] : state_.nodes) lives.push_back(life);
  return lives;
}

std::string Reaction::name_of(Life life) const {
  const auto found = state_.nodes.find(life);
  return found == state_.nodes.end() ? std::string() : found->second.name;
}

}  // namespace troupe::actors::reconciler
