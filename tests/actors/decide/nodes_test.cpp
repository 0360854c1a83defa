// Nodes that come, go and fail during a run.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;
using namespace std::chrono_literals;

TEST_CASE("after a loss the run resumes from the newest checkpoint", "[actors]") {
  Head head;
  head.run();
  head.run_to(10);
  CHECK(head.on(decide::Saved{10}) == Row::saved);
  head.run_to(14);
  CHECK(head.on(NodeLost{2, "signal 9"}) == Row::run_loss);
  CHECK(head.recorded(Record::Kind::dead));
  CHECK(head.ordered<EndAttempt>()->attempt == 1);
  CHECK_FALSE(head.ordered<MakePlan>());
  CHECK(head.on(AttemptEnded{0}) == Row::of_the_past);
  CHECK(head.on(AttemptEnded{1}) == Row::attempt_ended);
  CHECK(head.answer.rows.back() == Row::recover_plans);
  CHECK(head.on(AttemptEnded{1}) == Row::of_the_past);
}

TEST_CASE("an attempt begins after the newest checkpoint", "[actors]") {
  Head head;
  head.run();
  head.run_to(10);
  head.on(decide::Saved{10});
  head.run_to(14);
  head.on(NodeLost{2, "signal 9"});
  head.end_attempt();
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source.step == 10);
  head.load();
  CHECK(head.ordered<Begin>()->step == 10);
  CHECK(head.state.decided == 10);
}

TEST_CASE("losses during a recovery are merged into it", "[actors]") {
  Head head;
  head.run();
  head.on(NodeLost{2, "gone"});
  CHECK(head.come(4) == Row::recover_merges);
  CHECK(head.on(NodeLost{3, "gone too"}) == Row::recover_merges);
  CHECK_FALSE(head.ordered<EndAttempt>());
  head.end_attempt();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 4});
}

TEST_CASE("too few nodes suspend a run, which fails if that lasts too long", "[actors]") {
  Head head;
  head.run();
  head.on(NodeLost{2, "gone"});
  head.on(NodeLost{3, "gone"});
  CHECK(head.end_attempt() == Row::attempt_ended);
  CHECK(head.state.phase == Phase::suspend);
  CHECK(head.ordered<SetTimer>()->after == 24h);
  Head over = head;
  over.now += 24h;
  CHECK(over.on(Timeout{over.state.timer}) == Row::suspend_over);
  CHECK(over.ordered<End>()->code == 6);
  CHECK(head.on(NodeLost{1, "gone"}) == Row::suspend_waits);
  CHECK(head.come(5) == Row::suspend_waits);
  CHECK(head.come(6) == Row::suspend_enough);
  CHECK(head.state.phase == Phase::plan);
}

TEST_CASE("a node that comes while a run plays waits for the next plan", "[actors]") {
  Head head;
  head.run();
  CHECK(head.come(4) == Row::run_arrival);
  CHECK(head.answer.orders.empty());
  CHECK(head.come(5) == Row::run_arrival);
  CHECK(head.on(NodeLost{4, "gone"}) == Row::spare_lost);
  CHECK(head.state.phase == Phase::run);
  // The supervisor ends the attempt at a boundary.
  head.end_attempt();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2, 3, 5});
}

TEST_CASE("the earlier of two processes with the same name is gone", "[actors]") {
  Head head;
  head.begin();
  head.come(1);
  head.on(NodeCame{7, Head::name(1)});
  CHECK(head.recorded(Record::Kind::dead));
  CHECK(head.state.nodes.size() == 1);
  CHECK(head.state.nodes.contains(7));
}

namespace {

/// Both nodes report the loss, and their attempt ends.
void lose_pair(Head& head, Life one, Life other) {
  const auto attempt = head.state.attempt;
  CHECK(head.on(PairLost{one, other, attempt, "n1 has lost n2"}) == Row::pair_lost);
  CHECK(head.on(PairLost{other, one, attempt, "n2 has lost n1"}) == Row::of_the_past);
  head.end_attempt();
}

}  // namespace

TEST_CASE("no plan contains two nodes that have lost each other", "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  lose_pair(head, 2, 1);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  CHECK(head.state.futile == 0);
  CHECK_FALSE(head.recorded(Record::Kind::strike));
  head.play();
  head.now += 2s;
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2, 3});
}

TEST_CASE("a plan leaves out the node that has lost the most peers", "[actors]") {
  Head head;
  head.run();
  const auto attempt = head.state.attempt;
  head.on(PairLost{1, 2, attempt, "no path"});
  head.on(PairLost{1, 3, attempt, "no path"});
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{2, 3});
}

TEST_CASE("retries of a lost path do not count as failures if the run needs both nodes",
          "[actors]") {
  Head head({.fewest = 2, .most = 2});
  head.begin();
  head.come(1);
  head.come(2);
  head.play();
  head.run_to(4);
  for (const auto wait : {2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s, 60s, 60s, 60s, 60s}) {
    lose_pair(head, 1, 2);
    REQUIRE(head.state.phase == Phase::suspend);
    CHECK(head.ordered<SetTimer>()->after == wait);
    head.now += wait;
    CHECK(head.on(Timeout{head.state.timer}) == Row::suspend_tries);
    head.play();
  }
  CHECK(head.state.phase == Phase::run);
  // The path works again; after the next loss the wait is short again.
  head.run_to(5);
  CHECK(head.state.lost_pairs.empty());
  lose_pair(head, 1, 2);
  CHECK(head.ordered<SetTimer>()->after == 2s);
}

TEST_CASE("a path that stays lost ends the run after suspend_patience", "[actors]") {
  Head head({.fewest = 2, .most = 2, .suspend_patience = 5s});
  head.begin();
  head.come(1);
  head.come(2);
  head.play();
  for (const auto wait : {2s, 3s}) {
    lose_pair(head, 1, 2);
    REQUIRE(head.state.phase == Phase::suspend);
    CHECK(head.ordered<SetTimer>()->after == wait);
    head.now += wait;
    head.on(Timeout{head.state.timer});
    if (wait == 2s) head.play();
  }
  CHECK(head.answer.rows.back() == Row::suspend_over);
}

TEST_CASE("an attempt ended by a process death counts even if a lost path was reported",
          "[actors]") {
  Head head({.fewest = 1, .most = 2});
  head.begin();
  head.come(1);
  head.come(2);
  head.play();
  CHECK(head.on(PairLost{1, 2, head.state.attempt, "no goodbye came"}) == Row::pair_lost);
  head.on(NodeLost{2, "signal 9"});
  CHECK(head.state.futile == 1);
  CHECK(head.state.lost_pairs.empty());
  head.come(3);
  head.end_attempt();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
}

namespace {

/// Returns a head with three nodes in force at step 14, where two nodes keep each state.
Head with_keepers() {
  Head head({.fewest = 1, .most = 3});
  head.run();
  head.on(KeptBy{head.state.attempt, {{1, 2}, {2, 3}, {3, 1}}});
  head.run_to(14);
  return head;
}

}  // namespace

TEST_CASE("a head waits for silent nodes that alone keep a part of the state", "[actors]") {
  Head head = with_keepers();
  head.on(NodeLost{2, "silent for 0.5 s", true});
  Head one = head;
  one.end_attempt();
  CHECK(one.ordered<MakePlan>());  // Nodes 1 and 3 keep all states.
  head.on(NodeLost{3, "silent for 0.5 s", true});
  head.end_attempt();
  CHECK(head.answer.rows.back() == Row::recover_gathers);
  CHECK(head.ordered<SetTimer>()->after == 5s);
  CHECK_FALSE(head.ordered<MakePlan>());
  SECTION("until one of them is back") {
    head.now += 4s;
    CHECK(head.on(NodeCame{9, Head::name(3)}) == Row::recover_merges);
    CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 9});
  }
  SECTION("for gather_patience") {
    head.now += 5s;
    head.on(Timeout{head.state.timer});
    CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1});
  }
  SECTION("until it is known that they have ended") {
    CHECK(head.on(NodeLost{2, "signal 9"}) == Row::recover_gathers);
    CHECK(head.on(NodeLost{3, "signal 9"}) == Row::recover_plans);
    CHECK(head.ordered<MakePlan>());
  }
}

TEST_CASE("a head does not wait for silent nodes if a part of the state is lost for good",
          "[actors]") {
  Head head({.fewest = 1, .most = 3});
  head.run();
  head.on(KeptBy{head.state.attempt, {{1, 2}, {2}, {3}}});
  head.on(NodeLost{2, "signal 9"});
  head.on(NodeLost{3, "silent for 0.5 s", true});
  CHECK(head.end_attempt() == Row::attempt_ended);
  // Without copies no state is kept.
  Head bare({.fewest = 1, .most = 3});
  bare.run();
  bare.on(NodeLost{2, "silent for 0.5 s", true});
  CHECK(bare.end_attempt() == Row::attempt_ended);
  CHECK(bare.answer.rows.back() == Row::recover_plans);
}

TEST_CASE("a node that is not heard or is cordoned is in no plan, and is not dead", "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  CHECK(head.on(NodeHeard{2, false}) == Row::node_unheard);
  CHECK(head.on(NodeHeard{2, false}) == Row::of_the_past);
  CHECK(head.on(NodeCordoned{3, true}) == Row::node_cordoned);
  CHECK(head.state.phase == Phase::run);
  head.come(4);
  CHECK(head.on(AttemptEnded{1}) == Row::attempt_ended);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 4});
  CHECK(std::ranges::none_of(
      head.records, [](const Record& record) { return record.kind == Record::Kind::dead; }));
  CHECK(head.on(NodeHeard{2, true}) == Row::node_heard);
  CHECK(head.on(NodeCordoned{3, false}) == Row::node_uncordoned);
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2, 3, 4});
}

TEST_CASE("a suspended run goes on when enough nodes are heard", "[actors]") {
  Head head;
  head.run();
  head.on(NodeHeard{2, false});
  head.on(NodeHeard{3, false});
  head.on(AttemptEnded{1});
  CHECK(head.state.phase == Phase::suspend);
  CHECK(head.on(NodeHeard{3, true}) == Row::node_heard);
  CHECK(head.answer.rows.back() == Row::recover_plans);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
}

TEST_CASE("a run waits for the only keeper of a state until it is heard or known to be dead",
          "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  head.on(KeptBy{1, {{1, 2}, {3}}});
  head.on(NodeHeard{2, false});
  head.on(NodeHeard{3, false});
  CHECK(head.on(AttemptEnded{1}) == Row::attempt_ended);
  CHECK(head.answer.rows.back() == Row::recover_gathers);
  Head heard = head;
  CHECK(heard.on(NodeHeard{3, true}) == Row::node_heard);
  CHECK(heard.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  CHECK(head.on(NodeLost{3, "signal 9"}) == Row::recover_merges);
  CHECK_FALSE(head.state.nodes.contains(3));
  CHECK(head.answer.rows.back() == Row::suspend_begins);
}
