// Failures of players, and ends of processes.

#include <signal.h>

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;

TEST_CASE("a failing node is not in the next plan, and a step that fails on two nodes ends the run",
          "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(PlayerFailed{2, 1, "step 5: not finite"}) == Row::player_failed);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.ordered<EndAttempt>());
  head.end_attempt();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  head.play();
  CHECK(head.on(PlayerFailed{3, 2, "step 5: not finite"}) == Row::fails_again);
  CHECK(head.state.phase == Phase::ended);
  CHECK(head.ordered<End>()->code == 1);
}

TEST_CASE("failures of a step on two nodes for different reasons do not end the run", "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(PlayerFailed{2, 1, "step 5: not finite"}) == Row::player_failed);
  head.end_attempt();
  head.play();
  CHECK(head.on(PlayerFailed{3, 2, "step 5: its disk is full"}) == Row::player_failed);
  CHECK(head.state.phase == Phase::recover);
  CHECK(head.recorded(Record::Kind::strike));
}

TEST_CASE("a failure during a recovery counts against its node", "[actors]") {
  Head head;
  head.run();
  head.on(NodeLost{1, "gone"});
  REQUIRE(head.state.phase == Phase::recover);
  CHECK(head.on(PlayerFailed{2, 1, "step 5: not finite"}) == Row::player_failed);
  CHECK(head.state.phase == Phase::recover);
  CHECK(head.recorded(Record::Kind::strike));
}

TEST_CASE("a failure that is told while the next plan is made changes the plan", "[actors]") {
  Head head({.fewest = 1, .most = 3});
  head.run();
  head.on(NodeLost{1, "gone"});
  head.end_attempt();
  REQUIRE(head.state.phase == Phase::plan);
  CHECK(head.on(PlayerFailed{2, 1, "step 5: not finite"}) == Row::player_failed);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{3});
}

TEST_CASE("failures of an attempt after the first one do not count", "[actors]") {
  Head head;
  head.run();
  head.on(PlayerFailed{2, 1, "step 5: not finite"});
  CHECK(head.on(PlayerFailed{3, 1, "step 5: not finite"}) == Row::of_the_past);
  CHECK(head.state.phase == Phase::recover);
}

TEST_CASE("a run ends after too many failures for which no node is to blame", "[actors]") {
  Head head;
  head.run();
  for (int failures = 1; failures <= head.limits.failures.allowed; ++failures) {
    head.now += std::chrono::minutes(4);
    const auto place = "step " + std::to_string(failures) + ": a bad record";
    CHECK(head.on(PlayerFailed{0, head.state.attempt, place}) == Row::player_failed);
    CHECK_FALSE(head.recorded(Record::Kind::strike));
    const std::string counted = std::to_string(std::min(failures, 3)) + " of at most 3";
    CHECK(head.ordered<Warn>()->text == place +
                                            "; recovering from the newest checkpoint: failure " +
                                            counted + " within limits.strike_window");
    head.end_attempt();
    head.play();
  }
  Head later = head;
  later.now += std::chrono::minutes(4);  // The first failure is too old to count.
  CHECK(later.on(PlayerFailed{0, later.state.attempt, "step 4: a bad record"}) ==
        Row::player_failed);
  head.now += std::chrono::minutes(1);
  CHECK(head.on(PlayerFailed{0, head.state.attempt, "step 4: a bad record"}) ==
        Row::fails_too_often);
  CHECK(head.state.phase == Phase::ended);
  CHECK(head.ordered<End>()->why ==
        "step 4: a bad record (given up: failure 4 within limits.strike_window, and limits.strikes "
        "= 3)");
}

TEST_CASE("a run ends if its only nodes fail twice in the same way", "[actors]") {
  Head head({.fewest = 3, .most = 3});
  head.run();
  CHECK(head.on(PlayerFailed{2, 1, "device 1: no such file"}) == Row::player_failed);
  head.end_attempt();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2, 3});
  head.play();
  CHECK(head.on(PlayerFailed{2, 2, "device 1: no such file"}) == Row::fails_again);
  CHECK(head.ordered<End>()->why ==
        "device 1: no such file (given up: the same failure occurred twice at the same place)");
}

namespace {

/// Ends the process of node 3 by a signal after `step` steps, and brings it back under its name.
Row crash(Head& head, Life life, std::int64_t step, int signal) {
  head.run_to(step);
  const auto row = head.on(NodeLost{life, "was ended by a signal", false, signal});
  if (head.state.phase == Phase::ended) return row;
  head.come_as(life + 100, Head::name(life % 100));
  head.end_attempt();
  head.play();
  return row;
}

}  // namespace

TEST_CASE("a step that ends processes on two nodes in the same way ends the run", "[actors]") {
  Head head;
  head.run();
  CHECK(crash(head, 3, 5, SIGSEGV) == Row::run_loss);
  CHECK(crash(head, 2, 5, SIGSEGV) == Row::crashes_again);
  CHECK(head.ordered<End>()->why ==
        "step 6 has ended 2 processes, and has not been done; the last one, on node n2, was ended "
        "by a signal (given up: the same failure occurred twice at the same place)");
}

TEST_CASE("a step that ends a process while nodes load ends the run the next time", "[actors]") {
  Head head;
  head.run();
  head.run_to(5);
  // The channels report the loss first.
  head.on(AttemptEnded{1});
  CHECK(head.on(NodeLost{3, "was ended by a signal", false, SIGSEGV}) == Row::loss_under_way);
  head.play();
  head.run_to(5);
  CHECK(head.on(NodeLost{2, "was ended by a signal", false, SIGSEGV}) == Row::crashes_again);
}

TEST_CASE("processes that are killed from outside do not end the run", "[actors]") {
  Head head;
  head.run();
  CHECK(crash(head, 3, 5, SIGKILL) == Row::run_loss);
  CHECK(crash(head, 2, 5, SIGKILL) == Row::run_loss);
  CHECK(crash(head, 1, 6, SIGSEGV) == Row::run_loss);
}

TEST_CASE("a node whose processes keep ending is not used for a while", "[actors]") {
  Head head;
  head.run();
  Life life = 3;
  for (int step = 1; step <= 3; ++step, life += 100)
    CHECK(crash(head, life, step, SIGKILL) == Row::run_loss);
  CHECK(head.on(NodeLost{life, "was ended by a signal", false, SIGKILL}) == Row::node_crashes);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.ordered<Warn>()->text ==
        "node n3 is not used for a while: 4 processes have ended on node n3, and 0 on all others "
        "(limits.strikes = 3); the last one was ended by a signal");
}

TEST_CASE("a node that fails too often is excluded for a while", "[actors]") {
  Head head({.fewest = 1, .most = 3});
  head.run();
  Life life = 3;
  for (std::size_t failures = 1; failures <= head.limits.strikes.most; ++failures) {
    CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2, life});
    head.run_to(head.state.furthest + 1);
    head.on(PlayerFailed{life, head.state.attempt,
                         "step " + std::to_string(head.state.decided + 1) + ": broken"});
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
