#include <algorithm>

#include "actors/decide/reaction.h"

namespace troupe::actors::decide {
namespace {

constexpr Duration first_wait_for_path = std::chrono::seconds(2);
constexpr Duration longest_wait_for_path = std::chrono::minutes(1);
constexpr int most_doublings = 10;

}  // namespace

void Reaction::on(const NodeCame& came) {
  if (state_.phase == Phase::boot) return;
  const auto older = std::ranges::find_if(state_.nodes, [&](const auto& entry) {
    return entry.second.name == came.name && entry.first != came.life;
  });
  if (older != state_.nodes.end()) lose_from(older->first, "it came back as another process");
  const bool is_new = state_.nodes.try_emplace(came.life, Node{came.name}).second;
  if (!is_new) return;
  hear_of_keeper(came.name);
  come(came.life);
}

/// Handles a node that can be used from now on, according to the phase.
void Reaction::come(Life life) {
  const std::string name = name_of(life);
  switch (state_.phase) {
    case Phase::gather:
      return gather(name);
    case Phase::plan:
    case Phase::prepare:
    case Phase::load:
      return row(Row::arrival_under_way, name + " may be in the next plan");
    case Phase::run:
      return row(Row::run_arrival, name + " is there");
    case Phase::recover:
      row(Row::recover_merges, name + " came while the run recovers");
      if (state_.waits_for_keepers) go_on();
      return;
    case Phase::suspend:
      if (static_cast<int>(usable().size()) < limits_.fewest)
        return row(Row::suspend_waits, "still too few nodes");
      row(Row::suspend_enough, "enough nodes again");
      return recover();
    case Phase::boot:
    case Phase::ended:
      return;
  }
}

/// Handles a node that connects to a new head. Its players have ended with the earlier head.
void Reaction::gather(const std::string& name) {
  if (state_.led_before.erase(name) > 0 && state_.led_before.empty()) {
    row(Row::gather_again, "all nodes of the last attempt are there");
    return recover();
  }
  if (!state_.led_before.empty())
    return row(Row::gather_waits, std::to_string(state_.led_before.size()) +
                                      " nodes of the last attempt have not come back yet");
  if (static_cast<int>(usable().size()) < limits_.most)
    return row(Row::gather_waits, "more nodes may come");
  row(Row::gather_enough, "all nodes are there that the run can use");
  plan_or_suspend();
}

void Reaction::on(const NodeLost& lost) {
  // A process may be known to have ended only after it fell silent.
  const bool was_waited_for = !lost.is_silent && state_.silent_keepers.erase(lost.life) > 0;
  if (lost.is_silent) fall_silent(lost.life);
  if (lost.signal) judge_crash(lost);
  lose_from(lost.life, lost.why);
  if (was_waited_for && state_.waits_for_keepers) go_on();
}

/// A node that plays goes on, since its channels may be whole: they end the attempt if they are
/// not.
void Reaction::on(const NodeHeard& heard) {
  const auto found = state_.nodes.find(heard.life);
  if (found == state_.nodes.end() || found->second.is_heard == heard.is_heard) return;
  found->second.is_heard = heard.is_heard;
  if (!heard.is_heard) {
    row(Row::node_unheard, found->second.name + " is not heard");
    return fall_silent(heard.life);
  }
  row(Row::node_heard, found->second.name + " is heard again");
  state_.silent_keepers.erase(heard.life);
  if (found->second.is_usable()) return come(heard.life);
  if (state_.waits_for_keepers) go_on();
}

/// A node that plays goes on: it leaves at a boundary.
void Reaction::on(const NodeCordoned& cordoned) {
  const auto found = state_.nodes.find(cordoned.life);
  if (found == state_.nodes.end() || found->second.is_cordoned == cordoned.is_cordoned) return;
  found->second.is_cordoned = cordoned.is_cordoned;
  if (cordoned.is_cordoned)
    return row(Row::node_cordoned, found->second.name + " gets no new work");
  row(Row::node_uncordoned, found->second.name + " may get work again");
  if (found->second.is_usable()) come(cordoned.life);
}

void Reaction::on(const KeptBy& kept) {
  if (kept.attempt != state_.attempt) return;
  state_.keepers = kept.keepers;
  state_.silent_keepers.clear();
}

void Reaction::fall_silent(Life life) {
  const auto found = state_.nodes.find(life);
  if (found == state_.nodes.end()) return;
  const bool keeps = std::ranges::any_of(
      state_.keepers, [&](const auto& keepers) { return std::ranges::count(keepers, life) > 0; });
  if (keeps)
    state_.silent_keepers[life] = {found->second.name, now_ + limits_.gather_patience, false};
}

/// Notes that a silent node may have returned.
void Reaction::hear_of_keeper(const std::string& name) {
  for (auto& [life, keeper] : state_.silent_keepers)
    if (keeper.name == name) keeper.has_returned = true;
}

/// Handles a lost node, according to the phase.
void Reaction::lose_from(Life life, const std::string& why) {
  const auto found = state_.nodes.find(life);
  if (found == state_.nodes.end()) return;
  const std::string text = found->second.name + " is lost: " + why;
  const bool was_member = is_member(life);
  lose(life, why);
  switch (state_.phase) {
    case Phase::gather:
      return row(Row::gather_lost, text);
    case Phase::plan:
      row(Row::loss_under_way, text);
      return recover();
    case Phase::prepare:
    case Phase::load:
      if (!was_member) return row(Row::spare_lost, text);
      row(Row::loss_under_way, text);
      return give_up_attempt(text);
    case Phase::run:
      if (!was_member) return row(Row::spare_lost, text);
      row(Row::run_loss, text);
      return recover();
    case Phase::recover:
      return row(Row::recover_merges, text);
    case Phase::suspend:
      return row(Row::suspend_waits, text);
    case Phase::boot:
    case Phase::ended:
      return;
  }
}

void Reaction::lose(Life life, const std::string& why) {
  const auto found = state_.nodes.find(life);
  auto& dead = record(Record::Kind::dead, why);
  dead.lives = {life};
  dead.names = {found->second.name};
  state_.nodes.erase(found);
  std::erase_if(state_.lost_pairs, [&](const auto& entry) {
    return entry.first.first == life || entry.first.second == life;
  });
}

/// Decides only what the lost path means for the next plan. The players end the attempt.
void Reaction::on(const PairLost& lost) {
  if (lost.attempt != state_.attempt || lost.one == lost.other) return;
  if (!is_member(lost.one) || !is_member(lost.other)) return;
  if (!state_.nodes.contains(lost.one) || !state_.nodes.contains(lost.other)) return;
  auto& pair = state_.lost_pairs[std::minmax(lost.one, lost.other)];
  if (pair.attempt == lost.attempt) return;  // Both nodes report it.
  const auto wait = first_wait_for_path * (1 << std::min(pair.times, most_doublings));
  pair = {pair.times + 1, now_ + std::min<Duration>(wait, longest_wait_for_path), lost.attempt,
          lost.why};
  row(Row::pair_lost, lost.why);
}

/// A node with too many strikes is avoided for a while.
void Reaction::strike(const std::string& name, const std::string& why) {
  if (name.empty()) return;
  record(Record::Kind::strike, why).names = {name};
  state_.strikes.strike(name, now_);
}

/// Excludes a node from the next plan.
void Reaction::pass_over(Life life) {
  const auto found = state_.nodes.find(life);
  if (found != state_.nodes.end()) found->second.is_passed_over = true;
}

void Reaction::free_passed_over() {
  for (auto& [life, node] : state_.nodes) node.is_passed_over = false;
}

bool Reaction::is_member(Life life) const {
  return std::ranges::count(state_.plan.members, life) > 0;
}

std::string Reaction::name_of(Life life) const {
  const auto found = state_.nodes.find(life);
  return found == state_.nodes.end() ? std::string() : found->second.name;
}

}  // namespace troupe::actors::decide
