#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;
using namespace std::chrono_literals;

TEST_CASE("a head decides nothing while its journal fails and ends after a minute", "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(JournalFailed{"no room"}) == Row::journal_failed);
  CHECK(head.answer.records.empty());
  CHECK(head.state.phase == Phase::run);
  head.now += 59s;
  CHECK(head.on(JournalFailed{"no room"}) == Row::journal_failed);
  head.now += 2s;
  CHECK(head.on(JournalFailed{"no room"}) == Row::journal_over);
  CHECK(head.answer.records.empty());
  CHECK(head.ordered<EndAttempt>());
  CHECK(head.ordered<End>()->code == 1);
  CHECK(head.state.phase == Phase::ended);
}

TEST_CASE("every row has a name of its own", "[actors]") {
  std::set<std::string_view> names;
  for (const Row row : all_rows()) CHECK(names.insert(to_string(row)).second);
  CHECK(to_string(Row::recover_hopeless) == std::string("recover_hopeless"));
  CHECK(to_string(Row::load_late) == std::string("load_late"));
}

TEST_CASE("every event has an answer in every state", "[actors]") {
  std::vector<Head> heads(1);
  const auto keep = [&](Head head) { heads.push_back(std::move(head)); };
  Head head;
  head.begin();
  keep(head);
  for (const Life life : {1, 2, 3}) head.come(life);
  keep(head);
  head.plan();
  keep(head);
  head.prepare_all();
  keep(head);
  head.load();
  keep(head);
  head.run_to(4);
  head.on(KeptBy{1, {{1, 2}, {2}}});
  keep(head);
  head.on(NodeLost{1, "gone"});
  keep(head);
  Head waiting = head;
  waiting.on(NodeLost{2, "silent", true});
  waiting.end_attempt();
  keep(waiting);
  head.on(NodeLost{2, "gone"});
  head.end_attempt();
  keep(head);
  head.now += 25h;
  head.on(Timeout{head.state.timer});
  REQUIRE(head.state.phase == Phase::ended);
  keep(head);
  for (const auto& before : heads) {
    const auto& at = before.state;
    for (const std::uint64_t attempt : {at.attempt, at.attempt + 1, std::uint64_t{0}})
      for (const Life life : {0, 1, 3, 77}) {
        const std::vector<Event> events = {
            JournalRead{},
            SavesRead{{5}, 5},
            JournalFailed{"x"},
            Timeout{at.timer},
            Timeout{12345},
            NodeCame{life, Head::name(life)},
            NodeCame{life, Head::name(1)},
            NodeLost{life, "x"},
            NodeLost{life, "x", true},
            NodeHeard{life, false},
            NodeHeard{life, true},
            NodeCordoned{life, true},
            NodeCordoned{life, false},
            PlanMade{at.plan_number, {}, "x"},
            PlanMade{at.plan_number, PlanChoice{{3}, "x"}},
            decide::Prepared{life, attempt},
            decide::PrepareFailed{life, attempt, "x"},
            Loaded{attempt, at.line},
            LoadFailed{life, attempt, at.line, LoadFailed::Cause::source, "x"},
            LoadFailed{life, attempt, at.line, LoadFailed::Cause::node, "x"},
            AttemptEnded{attempt},
            KeptBy{attempt, {{life}}},
            PairLost{life, 3, attempt, "x"},
            StepDone{attempt, 5},
            StepEntered{attempt, 5},
            PlayerFailed{life, attempt, "x"},
            PlayerFailed{0, attempt, "x"},
            NodeLost{life, "x", false, 11},
            decide::Saved{5},
        };
        for (const auto& event : events) {
          const auto answer = react(at, event, before.now, before.limits);
          CAPTURE(static_cast<int>(at.phase), event.index(), to_string(answer.row()));
          // An attempt must be recorded before any node is told of it.
          for (const auto& order : answer.orders)
            if (const auto* prepare = std::get_if<decide::Prepare>(&order))
              REQUIRE(std::ranges::any_of(answer.records, [&](const Record& record) {
                return record.kind == Record::Kind::planned && record.attempt == prepare->attempt;
              }));
          // Every phase that waits has a timer, or the planner or the end of an attempt ends it.
          const auto& after = answer.state;
          const bool needs_timer = after.phase == Phase::gather || after.phase == Phase::prepare ||
                                   after.phase == Phase::load || after.phase == Phase::suspend ||
                                   (after.phase == Phase::recover && !after.is_in_head);
          if (needs_timer) REQUIRE(after.timer > 0);
          if (after.phase == Phase::recover && after.is_in_head && at.phase != Phase::recover)
            REQUIRE(std::ranges::any_of(answer.orders, [](const Order& order) {
              return std::holds_alternative<EndAttempt>(order);
            }));
          // No plan is made while something of the attempt before is left.
          if (after.phase == Phase::plan) REQUIRE_FALSE(after.is_in_head);
          REQUIRE(after.attempt >= at.attempt);
          REQUIRE(after.term >= at.term);
        }
      }
  }
}
