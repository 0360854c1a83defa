#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/decide/run_machine.h"
#include "catch.h"

namespace troupe::actors::decide {

/// The deciding part of a head, and its last orders.
class Head {
 public:
  explicit Head(Limits limits = {.fewest = 2, .most = 3}) : limits(limits) {}

  Row on(const Event& event) {
    answer = react(state, event, now, limits);
    for (const auto& one : answer.records) records.push_back(one);
    state = answer.state;
    return answer.row();
  }
  template <class Wanted>
  const Wanted* ordered() const {
    for (const auto& order : answer.orders)
      if (const auto* found = std::get_if<Wanted>(&order)) return found;
    return nullptr;
  }
  bool recorded(Record::Kind kind) const {
    return std::ranges::any_of(answer.records,
                               [&](const Record& record) { return record.kind == kind; });
  }

  Row begin(std::vector<std::int64_t> saved = {}) {
    const Row row = on(JournalRead{.records = records});
    state = react(state, SavesRead{std::move(saved), committed}, now, limits).state;
    return row;
  }
  Row come(Life life) { return on(NodeCame{life, name(life)}); }
  Row come_as(Life life, const std::string& name) { return on(NodeCame{life, name}); }
  static std::string name(Life life) { return "n" + std::to_string(life); }

  /// Continues until the plan that the planner would make.
  Row plan() {
    const auto* asked = ordered<MakePlan>();
    REQUIRE(asked);
    return on(PlanMade{asked->number, PlanChoice{asked->nodes, "a plan", owners}});
  }
  Row prepare_all() {
    Row row = Row::of_the_past;
    for (const Life life : std::vector<Life>(state.plan.members))
      row = on(decide::Prepared{life, state.attempt, kept});
    return row;
  }
  Row load() { return on(Loaded{state.attempt, state.line}); }
  /// Tells that nothing of the attempt is left, if there was something.
  Row end_attempt() { return state.is_in_head ? on(AttemptEnded{state.attempt}) : answer.row(); }
  /// Begins with three nodes and a plan in force.
  void run() {
    begin();
    for (const Life life : {1, 2, 3}) come(life);
    play();
  }
  /// Continues until the plan is in force.
  void play() {
    plan();
    prepare_all();
    REQUIRE(load() == Row::loaded);
  }
  void run_to(std::int64_t step) {
    for (std::int64_t at = state.decided + 1; at <= step; ++at) {
      on(StepDone{state.attempt, at});
      state = react(state, StepEntered{state.attempt, at}, now, limits).state;
    }
  }

  Limits limits;
  State state;
  Time now{std::chrono::hours(1)};
  Answer answer;
  std::vector<Record> records;
  std::int64_t committed = 0;  // Steps in the ledger when it begins.
  std::vector<KeptStep> kept;  // In the memory of each node.
  std::vector<int> owners;     // The process of each optimizer, in each plan.
};

}  // namespace troupe::actors::decide
