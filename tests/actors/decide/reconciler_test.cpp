#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::reconciler;
using namespace std::chrono_literals;

TEST_CASE("a head decides nothing while its journal fails and halts after a minute", "[actors]") {
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
  CHECK(head.state.phase == Phase::halted);
}

TEST_CASE("a head that sees a newer one ends at once", "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(Deposed{1}) == Row::of_the_past);
  CHECK(head.on(Deposed{2}) == Row::deposed);
  CHECK(head.ordered<End>()->code == 76);
  CHECK(head.answer.records.empty());
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
  head.load_all();
  keep(head);
  head.run_to(4);
  head.on(SavePoint{1, 4});
  keep(head);
  head.on(Lost{1, "gone"});
  keep(head);
  head.on(Lost{2, "gone"});
  head.freeze_all();
  keep(head);
  head.on(Deposed{9});
  keep(head);
  for (const auto& before : heads) {
    const auto& at = before.state;
    for (const std::uint64_t epoch : {at.epoch, at.epoch + 1, std::uint64_t{0}})
      for (const Life life : {0, 1, 3, 77}) {
        const std::vector<Event> events = {
            JournalRead{},
            Attached{life, Head::name(life), 0, epoch},
            Lost{life, "x"},
            Suspected{life, "x"},
            Notice{life, 1s},
            PlanMade{at.plan_number, {}, "x"},
            PlanMade{at.plan_number, PlanChoice{{3}, 1, "x"}, {}},
            reconciler::Prepared{life, epoch},
            reconciler::PrepareFailed{life, epoch, "x"},
            Loaded{life, epoch, at.line, "x"},
            LoadFailed{life, epoch, at.line, LoadFailed::Cause::checkpoint, "x"},
            LoadFailed{life, epoch, at.line, LoadFailed::Cause::node, "x"},
            Frozen{life, epoch, 3},
            StepDecided{epoch, 5},
            reconciler::StepFailed{life, epoch, 5, "x"},
            SavePoint{epoch, 5},
            ShardsWritten{at.last_save},
            reconciler::Saved{at.last_save, 5},
            reconciler::SaveFailed{at.last_save, "x"},
            Slow{life, "x"},
            JournalFailed{"x"},
            Deposed{at.term + 1},
            StopAsked{},
            DrainAsked{Head::name(life)},
            Timeout{at.timer},
            Timeout{at.save_timer},
            Timeout{12345},
        };
        for (const auto& event : events) {
          const auto answer = react(at, event, before.now, before.limits);
          CAPTURE(static_cast<int>(at.phase), event.index(), to_string(answer.row()));
          // An attempt must be recorded before any node is told of it.
          for (const auto& order : answer.orders)
            if (const auto* prepare = std::get_if<reconciler::Prepare>(&order))
              REQUIRE(std::ranges::any_of(answer.records, [&](const Record& record) {
                return record.kind == Record::Kind::epoch && record.epoch == prepare->epoch;
              }));
          // Every waiting phase must have a timer.
          const auto phase = answer.state.phase;
          const bool needs_timer = phase == Phase::gather || phase == Phase::plan ||
                                   phase == Phase::prepare || phase == Phase::load ||
                                   phase == Phase::recover || phase == Phase::suspend;
          if (needs_timer) REQUIRE(answer.state.timer > 0);
          REQUIRE(answer.state.epoch >= at.epoch);
          REQUIRE(answer.state.term >= at.term);
        }
      }
  }
}
