#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/decide/reconciler.h"
#include "catch.h"

namespace troupe::actors::reconciler {

/// The deciding part of a head, and its last orders.
class Head {
 public:
  explicit Head(Limits limits = {.fewest = 2, .most = 3, .steps = 100}) : limits(limits) {}

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
    return on(JournalRead{JournalRead::Health::whole, records, std::move(saved), committed});
  }
  Row come(Life life) { return on(Attached{life, name(life)}); }
  static std::string name(Life life) { return "n" + std::to_string(life); }

  /// Continues until the plan that the planner would make.
  Row plan(double rate = 1) {
    const auto* asked = ordered<MakePlan>();
    REQUIRE(asked);
    return on(PlanMade{asked->number, PlanChoice{asked->nodes, rate, "a plan", owners}, {}});
  }
  Row prepare_all() {
    Row row = Row::of_the_past;
    for (const Life life : std::vector<Life>(state.plan.members))
      row = on(reconciler::Prepared{life, state.epoch, kept});
    return row;
  }
  Row load_all() {
    Row row = Row::of_the_past;
    for (const Life life : std::vector<Life>(state.plan.members))
      row = on(Loaded{life, state.epoch, state.line, "digest"});
    return row;
  }
  Row freeze_all() {
    Row row = Row::of_the_past;
    for (const Life life : std::set<Life>(state.waits_for))
      row = on(Frozen{life, state.epoch, state.decided});
    return row;
  }
  Row save_all() {
    const auto saving = *state.saving;
    on(ShardsWritten{saving.save});
    return on(reconciler::Saved{saving.save, saving.step});
  }
  /// Begins with three nodes and a plan in force.
  void run() {
    begin();
    for (const Life life : {1, 2, 3}) come(life);
    plan();
    prepare_all();
    REQUIRE(load_all() == Row::loaded_all);
  }
  void run_to(std::int64_t step) {
    for (std::int64_t at = state.decided + 1; at <= step; ++at) on(StepDecided{state.epoch, at});
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

}  // namespace troupe::actors::reconciler
