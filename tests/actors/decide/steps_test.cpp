// Steps, failures of steps, and saves.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;

TEST_CASE("a step that is done while its attempt ends counts", "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  head.on(NodeLost{1, "gone"});
  CHECK(head.on(StepDone{1, 5}) == Row::step_done);
  head.kept = {{5, {}}};
  head.end_attempt();
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source == StateSource{StateSource::From::memory, 5, {}});
}

TEST_CASE("a run resumes from a save that completes while the next attempt prepares", "[actors]") {
  Head head;
  head.run();
  head.run_to(12);
  head.on(NodeLost{1, "signal 9"});
  head.end_attempt();
  head.plan();
  CHECK(head.on(decide::Saved{10}) == Row::saved);
  CHECK(head.prepare_all() == Row::prepared_all);
  CHECK(head.ordered<Load>()->source.step == 10);
}

TEST_CASE("a new save is kept although a bad checkpoint has a higher step", "[actors]") {
  Head head;
  head.limits.keep = 1;
  head.begin({30});  // An earlier head went back behind step 30.
  for (const std::int64_t step : {10, 20}) {
    CHECK(head.on(decide::Saved{step}) == Row::saved);
    CHECK(head.on(decide::Saved{step}) == Row::of_the_past);
    CHECK(head.state.saved == std::vector<std::int64_t>{step, 30});
  }
}

TEST_CASE("a failing node is not in the next plan, and a step that fails on two nodes ends the run",
          "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(PlayerFailed{2, 1, 5, "not finite"}) == Row::player_failed);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.ordered<EndAttempt>());
  head.end_attempt();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  head.play();
  CHECK(head.on(PlayerFailed{3, 2, 5, "not finite"}) == Row::fails_everywhere);
  CHECK(head.state.phase == Phase::ended);
  CHECK(head.ordered<End>()->code == 1);
}

TEST_CASE("failures of a step on two nodes for different reasons do not end the run", "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(PlayerFailed{2, 1, 5, "not finite"}) == Row::player_failed);
  head.end_attempt();
  head.play();
  CHECK(head.on(PlayerFailed{3, 2, 5, "its disk is full"}) == Row::player_failed);
  CHECK(head.state.phase == Phase::recover);
  CHECK(head.recorded(Record::Kind::strike));
}

TEST_CASE("a failure during a recovery counts against its node", "[actors]") {
  Head head;
  head.run();
  head.on(NodeLost{1, "gone"});
  REQUIRE(head.state.phase == Phase::recover);
  CHECK(head.on(PlayerFailed{2, 1, 5, "not finite"}) == Row::player_failed);
  CHECK(head.state.phase == Phase::recover);
  CHECK(head.recorded(Record::Kind::strike));
}

TEST_CASE("a failure that is told while the next plan is made changes the plan", "[actors]") {
  Head head({.fewest = 1, .most = 3});
  head.run();
  head.on(NodeLost{1, "gone"});
  head.end_attempt();
  REQUIRE(head.state.phase == Phase::plan);
  CHECK(head.on(PlayerFailed{2, 1, 5, "not finite"}) == Row::player_failed);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{3});
}

TEST_CASE("a node whose process ended gets a strike under its name", "[actors]") {
  Head head;
  head.run();
  head.on(NodeLost{2, "its process was ended by signal 11"});
  CHECK(head.on(PlayerFailed{0, 1, 5, "it ended", Head::name(2)}) == Row::player_failed);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.answer.records.back().names == std::vector<std::string>{Head::name(2)});
}

TEST_CASE("a node that fails too often is excluded for a while", "[actors]") {
  Head head({.fewest = 1, .most = 3});
  head.run();
  Life life = 3;
  for (std::size_t failures = 1; failures <= head.limits.strikes.most; ++failures) {
    CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2, life});
    head.run_to(head.state.furthest + 1);
    head.on(PlayerFailed{life, head.state.attempt, head.state.decided + 1, "broken"});
    head.end_attempt();
    head.play();
    // Its daemon has restarted it under the same name.
    CHECK(head.on(NodeLost{life, "it was restarted"}) == Row::spare_lost);
    life += 100;
    CHECK(head.on(NodeCame{life, "n3"}) == Row::run_arrival);
    head.end_attempt();
    if (failures < head.limits.strikes.most) head.play();
  }
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2});
  // An excluded node is better than none.
  Head alone = head;
  alone.on(NodeLost{1, "gone"});
  alone.on(NodeLost{2, "gone"});
  CHECK(alone.ordered<MakePlan>()->nodes == std::vector<Life>{life});
  head.now += std::chrono::hours(2);
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2, life});
}
