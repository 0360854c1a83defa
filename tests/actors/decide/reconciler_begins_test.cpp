// The beginnings of a head: with a new run, or with the journal of an earlier head.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::reconciler;
using namespace std::chrono_literals;

TEST_CASE("a new run waits for nodes, plans, prepares, loads and runs", "[actors]") {
  Head head;
  CHECK(head.begin() == Row::boot_fresh);
  CHECK(head.recorded(Record::Kind::term));
  CHECK(head.ordered<SetTimer>()->after == 30s);
  CHECK(head.come(1) == Row::gather_waits);
  CHECK(head.come(2) == Row::gather_waits);
  CHECK(head.come(3) == Row::gather_enough);
  CHECK(head.plan() == Row::plan_ready);
  CHECK(head.recorded(Record::Kind::epoch));
  CHECK(head.ordered<reconciler::Prepare>()->epoch == 1);
  CHECK(head.on(reconciler::Prepared{1, 1}) == Row::prepared_some);
  CHECK(head.prepare_all() == Row::prepared_all);
  CHECK(head.ordered<Load>()->source.step == 0);
  CHECK(head.on(Loaded{1, 1, 0, "digest"}) == Row::loaded_some);
  CHECK(head.load_all() == Row::loaded_all);
  CHECK(head.recorded(Record::Kind::active));
  CHECK(head.ordered<Activate>()->nodes == std::vector<Life>{1, 2, 3});
  CHECK(head.state.phase == Phase::run);
}

TEST_CASE("a new run begins with fewer nodes after its patience", "[actors]") {
  Head head;
  head.begin();
  head.come(1);
  head.come(2);
  CHECK(head.on(Timeout{head.state.timer}) == Row::gather_over);
  CHECK(head.state.phase == Phase::plan);

  Head alone;
  alone.begin();
  alone.come(1);
  CHECK(alone.on(Timeout{alone.state.timer}) == Row::gather_over);
  CHECK(alone.state.phase == Phase::suspend);
  CHECK(alone.come(2) == Row::suspend_enough);
  CHECK(alone.state.phase == Phase::plan);
}

TEST_CASE("a restarted head adopts an attempt whose nodes still play", "[actors]") {
  Head head;
  head.run();
  head.run_to(7);
  Head next;
  next.records = head.records;
  CHECK(next.begin() == Row::boot_again);
  CHECK(next.state.term == 2);
  CHECK(next.on(Attached{1, "n1", 1, 1}) == Row::gather_waits);
  CHECK(next.on(Attached{2, "n2", 1, 1}) == Row::gather_waits);
  CHECK(next.on(Attached{3, "n3", 1, 1}) == Row::gather_adopt);
  CHECK(next.ordered<Adopt>()->epoch == 1);
  CHECK(next.state.phase == Phase::run);
  CHECK(next.answer.records.empty());
  CHECK(next.on(StepDecided{1, 8}) == Row::run_decided);
}

TEST_CASE("adopting an attempt does not wait for a node that an earlier head has stopped",
          "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  CHECK(head.on(Frozen{1, head.state.epoch - 1, 4}) == Row::of_the_past);
  CHECK(head.on(Frozen{1, head.state.epoch, 4}) == Row::recover_waits);
  CHECK(head.state.phase == Phase::recover);
  CHECK(head.ordered<Freeze>());
  head.freeze_all();
  CHECK(head.state.phase == Phase::plan);
}

TEST_CASE("a restarted head recovers if a node is missing", "[actors]") {
  Head head;
  head.run();
  const auto back = [&] {
    Head next;
    next.records = head.records;
    next.begin();
    next.on(Attached{1, "n1", 1, 1});
    next.on(Attached{2, "n2", 1, 1});
    return next;
  };
  Head late = back();
  CHECK(late.on(Timeout{late.state.timer}) == Row::gather_over);
  CHECK(late.ordered<Freeze>()->nodes == std::vector<Life>{1, 2});
  CHECK(late.freeze_all() == Row::recover_plans);
  Head lost = back();
  CHECK(lost.on(Lost{2, "gone"}) == Row::gather_lost);
  // Node 3 has restarted, so it plays nothing any more.
  Head reborn = back();
  CHECK(reborn.on(Attached{33, "n2", 1, 0}) == Row::gather_lost);
  CHECK(reborn.state.phase == Phase::gather);
  CHECK(reborn.on(Attached{3, "n3", 1, 1}) == Row::gather_again);
  CHECK(reborn.ordered<Freeze>()->nodes == std::vector<Life>{1, 3});
  // None of the nodes plays any more.
  Head idle;
  idle.records = head.records;
  idle.begin();
  CHECK(idle.on(Attached{11, "n1", 1, 0}) == Row::gather_waits);
  CHECK(idle.on(Attached{12, "n2", 1, 0}) == Row::gather_waits);
  CHECK(idle.on(Attached{13, "n3", 1, 0}) == Row::gather_again);
  CHECK(idle.ordered<MakePlan>()->nodes == std::vector<Life>{11, 12, 13});
}

TEST_CASE("a head begins with a torn journal, and refuses a damaged one", "[actors]") {
  Head torn;
  torn.run();
  const auto records = torn.records;
  Head next;
  CHECK(next.on(JournalRead{JournalRead::Health::torn, records, {}}) == Row::boot_torn);
  CHECK(next.state.phase == Phase::gather);
  Head damaged;
  CHECK(damaged.on(JournalRead{JournalRead::Health::damaged, records, {}}) == Row::boot_damaged);
  CHECK(damaged.state.phase == Phase::halted);
  CHECK(damaged.ordered<End>()->code == 1);
}

TEST_CASE("the number of a recorded attempt is not reused even if it never began", "[actors]") {
  Head head;
  head.begin();
  for (const Life life : {1, 2, 3}) head.come(life);
  head.plan();  // Attempt 1 is on disk, and the head dies.
  Head next;
  next.records = head.records;
  next.begin();
  for (const Life life : {1, 2, 3}) next.come(life);
  next.plan();
  CHECK(next.state.epoch == 2);
}

TEST_CASE("a new run does not reuse the attempts of an earlier run of its name", "[actors]") {
  const auto boot = [](std::vector<Record> records, std::uint64_t earlier) {
    Head head;
    JournalRead read;
    read.records = std::move(records);
    read.earlier_attempts = earlier;
    head.on(read);
    return head;
  };
  Head head = boot({}, 7);
  CHECK(head.answer.row() == Row::boot_fresh);
  // The next head finds only the records of this run.
  Head next = boot(head.records, 0);
  CHECK(next.answer.row() == Row::boot_fresh);
  for (const Life life : {1, 2, 3}) next.come(life);
  next.plan();
  CHECK(next.state.epoch == 8);
  // An attempt may have ended before it was planned; then its number is not used.
  next.on(Lost{3, "gone"});
  next.freeze_all();
  const auto* asked = next.ordered<MakePlan>();
  REQUIRE(asked);
  next.on(PlanMade{asked->number, PlanChoice{asked->nodes, 1, "a plan"}, {}, 10});
  CHECK(next.state.epoch == 10);
}
