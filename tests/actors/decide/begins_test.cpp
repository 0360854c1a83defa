// The beginnings of a head: with a new run, or with the journal of an earlier head.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;
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
  CHECK(head.recorded(Record::Kind::planned));
  CHECK(head.ordered<decide::Prepare>()->attempt == 1);
  CHECK(head.on(decide::Prepared{1, 1}) == Row::prepared_some);
  CHECK(head.prepare_all() == Row::prepared_all);
  CHECK(head.ordered<Load>()->source.step == 0);
  CHECK(head.load() == Row::loaded);
  CHECK(head.recorded(Record::Kind::begun));
  CHECK(head.ordered<Begin>()->attempt == 1);
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

TEST_CASE("a restarted head waits for the nodes that the earlier one led", "[actors]") {
  Head head;
  head.run();
  head.run_to(7);
  const auto back = [&] {
    Head next;
    next.records = head.records;
    CHECK(next.begin() == Row::boot_again);
    CHECK(next.state.term == 2);
    CHECK(next.ordered<SetTimer>()->after == 5s);
    CHECK(next.come(1) == Row::gather_waits);
    // A new process of that node.
    CHECK(next.on(NodeCame{22, "n2"}) == Row::gather_waits);
    CHECK(next.come(4) == Row::gather_waits);
    return next;
  };
  Head all = back();
  CHECK(all.come(3) == Row::gather_again);
  CHECK(all.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3, 4, 22});
  Head late = back();
  CHECK(late.on(Timeout{late.state.timer}) == Row::gather_over);
  CHECK(late.ordered<MakePlan>()->nodes == std::vector<Life>{1, 4, 22});
  Head lost = back();
  CHECK(lost.on(NodeLost{22, "gone"}) == Row::gather_lost);
  CHECK(lost.come(3) == Row::gather_again);
  CHECK(lost.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3, 4});
}

TEST_CASE("a restarted head does not wait for nodes of an attempt that has ended", "[actors]") {
  Head head;
  head.run();
  head.run_to(7);
  head.on(NodeLost{2, "gone"});
  Head next;
  next.records = head.records;
  CHECK(next.begin() == Row::boot_again);
  next.come(1);
  next.come(3);
  CHECK(next.come(4) == Row::gather_enough);
}

TEST_CASE("a head begins with a torn journal", "[actors]") {
  Head torn;
  torn.run();
  Head next;
  JournalRead read;
  read.is_torn = true;
  read.records = torn.records;
  CHECK(next.on(read) == Row::boot_torn);
  CHECK(next.state.phase == Phase::gather);
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
  CHECK(next.state.attempt == 2);
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
  CHECK(next.state.attempt == 8);
  // An attempt may have ended before it was planned; then its number is not used.
  next.on(NodeLost{3, "gone"});
  next.end_attempt();
  const auto* asked = next.ordered<MakePlan>();
  REQUIRE(asked);
  next.on(PlanMade{asked->number, PlanChoice{asked->nodes, "a plan"}, {}, 10});
  CHECK(next.state.attempt == 10);
}
