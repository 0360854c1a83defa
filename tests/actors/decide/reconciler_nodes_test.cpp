// Nodes that come, go and fail during a run.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::reconciler;
using namespace std::chrono_literals;

TEST_CASE("a loss freezes all nodes, and the run resumes from the newest checkpoint", "[actors]") {
  Head head;
  head.run();
  head.run_to(10);
  CHECK(head.on(SavePoint{1, 10}) == Row::save_begins);
  CHECK(head.ordered<reconciler::Save>()->meanwhile == Meanwhile::go_on);
  CHECK(head.save_all() == Row::save_complete);
  head.run_to(14);
  CHECK(head.on(Lost{2, "signal 9"}) == Row::run_loss);
  CHECK(head.ordered<Freeze>()->nodes == std::vector<Life>{1, 3});
  CHECK(head.on(Frozen{1, 1, 14}) == Row::recover_waits);
  CHECK(head.on(Frozen{3, 1, 14}) == Row::recover_plans);
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source.step == 10);
  head.load_all();
  CHECK(head.ordered<Activate>()->step == 10);
  CHECK(head.state.decided == 10);
}

TEST_CASE("losses during a recovery are merged into it", "[actors]") {
  Head head;
  head.run();
  head.on(Lost{2, "gone"});
  CHECK(head.come(4) == Row::recover_merges);
  CHECK(head.on(Lost{3, "gone too"}) == Row::recover_merges);
  CHECK(head.freeze_all() == Row::recover_plans);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 4});
  // A node that does not confirm the freeze counts as dead.
  Head silent;
  silent.run();
  silent.on(Lost{1, "gone"});
  silent.on(Frozen{2, 1, 0});
  CHECK(silent.on(Timeout{silent.state.timer}) == Row::recover_waits);
  CHECK(silent.state.phase == Phase::suspend);
  CHECK_FALSE(silent.state.nodes.contains(3));
}

TEST_CASE("too few nodes suspend a run, which fails if that lasts too long", "[actors]") {
  Head head;
  head.run();
  head.on(Lost{2, "gone"});
  head.on(Lost{3, "gone"});
  CHECK(head.freeze_all() == Row::recover_plans);
  CHECK(head.state.phase == Phase::suspend);
  CHECK(head.ordered<SetTimer>()->after == 24h);
  Head over = head;
  over.now += 24h;
  CHECK(over.on(Timeout{over.state.timer}) == Row::suspend_over);
  CHECK(over.ordered<End>()->code == 6);
  CHECK(head.on(Lost{1, "gone"}) == Row::suspend_waits);
  CHECK(head.come(5) == Row::suspend_waits);
  CHECK(head.come(6) == Row::suspend_enough);
  CHECK(head.state.phase == Phase::plan);
}

TEST_CASE("the loss of a spare node and a suspicion only cause an event", "[actors]") {
  Head head;
  head.run();
  head.come(4);
  CHECK(head.on(Lost{4, "gone"}) == Row::run_spare_lost);
  CHECK(head.state.phase == Phase::run);
  CHECK(head.on(Suspected{2, "silent"}) == Row::run_suspect);
  CHECK(head.answer.orders.empty());
  CHECK(head.state.phase == Phase::run);
  CHECK(head.on(Slow{2, "1.6 times"}) == Row::run_slow);
}

TEST_CASE("a new node is used at a save point if that pays", "[actors]") {
  Head head;
  head.run();
  head.run_to(10);
  CHECK(head.come(4) == Row::run_arrival);
  Head poor = head;
  CHECK(poor.plan(1.02) == Row::run_not_better);
  CHECK(head.plan(1.3) == Row::run_better);
  CHECK(head.ordered<AskSavePoint>());
  Head lost = head;
  CHECK(lost.on(Lost{4, "gone"}) == Row::switch_dropped);
  CHECK(lost.state.phase == Phase::run);
  Head member = head;
  CHECK(member.on(Lost{1, "gone"}) == Row::switch_dropped);
  CHECK(member.state.phase == Phase::recover);
  head.on(SavePoint{1, 11});
  CHECK(head.ordered<reconciler::Save>()->meanwhile == Meanwhile::hold);
  head.save_all();
  CHECK(head.ordered<reconciler::Prepare>()->plan.members == std::vector<Life>{1, 2, 3, 4});
  head.prepare_all();
  CHECK(head.ordered<Load>()->source.step == 11);  // No step is repeated.
  head.load_all();
  // A second switch must not follow so soon.
  head.come(5);
  CHECK(head.plan(2.0) == Row::run_not_better);
}

TEST_CASE("a switch pays if its gain until the next change exceeds its cost", "[actors]") {
  State state;
  state.begun = Time{1h};
  state.plan.rate = 1;
  const Limits limits{.steps = 100'000, .hold_time = 15s};
  const Time later{3h};
  const PlanChoice better{{1}, 1.1, ""};
  CHECK(pays(state, better, later, limits));
  CHECK_FALSE(pays(state, PlanChoice{{1}, 1.02, ""}, later, limits));
  // A node comes or goes every minute. A switch then counts on less than 2 min x 9 %, which is less
  // than 15 s.
  for (int minute = 0; minute < 60; ++minute) state.changes.push_back(later - minute * 1min);
  CHECK(time_to_next_change(state, later) < 2min + 1s);
  CHECK_FALSE(pays(state, better, later, limits));
  CHECK(pays(state, PlanChoice{{1}, 2, ""}, later, limits));
  // The run is nearly over.
  state.changes.clear();
  state.decided = 99'999;
  CHECK_FALSE(pays(state, better, later, limits));
}

TEST_CASE("a node with a notice leaves at a boundary if there is time", "[actors]") {
  Head head;
  head.run();
  head.run_to(3);
  Head late = head;
  CHECK(late.on(Notice{2, 500ms}) == Row::run_notice_short);
  CHECK(late.state.phase == Phase::recover);
  late.freeze_all();
  CHECK(late.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  Head lost = head;
  lost.on(Notice{2, 30s});
  CHECK(lost.on(Lost{2, "it did not wait"}) == Row::drain_lost);
  CHECK(head.on(Notice{2, 30s}) == Row::run_notice);
  CHECK(head.ordered<AskSavePoint>());
  head.on(SavePoint{1, 4});
  head.save_all();
  CHECK(head.state.phase == Phase::plan);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source.step == 4);
  head.load_all();
  CHECK(head.ordered<Retire>()->life == 2);
  CHECK(head.on(Lost{2, "it went"}) == Row::run_spare_lost);
  CHECK(head.on(DrainAsked{"n3"}) == Row::drain_asked);
}

TEST_CASE("a failing node is restarted but a step that fails on two nodes ends the run",
          "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(reconciler::StepFailed{2, 1, 5, "not finite"}) == Row::step_failed);
  CHECK(head.ordered<Retire>()->life == 2);
  CHECK(head.recorded(Record::Kind::strike));
  head.freeze_all();
  head.plan();
  head.prepare_all();
  head.load_all();
  CHECK(head.on(reconciler::StepFailed{3, 2, 5, "not finite"}) == Row::step_poisoned);
  CHECK(head.state.phase == Phase::halted);
  CHECK(head.ordered<End>()->code == 1);
}

TEST_CASE("failures of a step on two nodes for different reasons do not end the run", "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(reconciler::StepFailed{2, 1, 5, "not finite"}) == Row::step_failed);
  head.freeze_all();
  head.plan();
  head.prepare_all();
  head.load_all();
  CHECK(head.on(reconciler::StepFailed{3, 2, 5, "its disk is full"}) == Row::step_failed);
  CHECK(head.state.phase != Phase::halted);
  CHECK(head.recorded(Record::Kind::strike));
}

TEST_CASE("a failure during a recovery counts against its node", "[actors]") {
  Head head;
  head.run();
  head.on(Lost{1, "gone"});
  REQUIRE(head.state.phase == Phase::recover);
  CHECK(head.on(reconciler::StepFailed{2, 1, 5, "not finite"}) == Row::step_failed);
  CHECK(head.state.phase == Phase::recover);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.ordered<Retire>()->life == 2);
}

TEST_CASE("a node whose process ended gets a strike under its name", "[actors]") {
  Head head;
  head.run();
  head.on(Lost{2, "its process was ended by signal 11"});
  CHECK(head.on(reconciler::StepFailed{0, 1, 5, "it ended", Head::name(2)}) == Row::step_failed);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.answer.records.back().names == std::vector<std::string>{Head::name(2)});
}

TEST_CASE("a head rejects the earlier of two processes with the same name", "[actors]") {
  Head head;
  head.begin();
  head.come(1);
  head.on(Attached{7, Head::name(1)});
  REQUIRE(head.ordered<Reject>());
  CHECK(head.ordered<Reject>()->life == 1);
  CHECK(head.state.nodes.size() == 1);
}

TEST_CASE("a node that fails too often is excluded for a while", "[actors]") {
  Head head({.fewest = 1, .most = 3, .steps = 100});
  head.run();
  Life life = 3;
  std::size_t failures = 0;
  for (;;) {
    head.run_to(head.state.furthest + 1);
    head.on(reconciler::StepFailed{life, head.state.epoch, head.state.decided + 1, "broken"});
    ++failures;
    head.freeze_all();
    head.plan();
    head.prepare_all();
    REQUIRE(head.load_all() == Row::loaded_all);
    // Its daemon has restarted it under the same name.
    CHECK(head.on(Lost{life, "it was restarted"}) == Row::run_spare_lost);
    life += 100;
    head.state.saves_since_switch = 1000;
    CHECK(head.on(Attached{life, "n3"}) == Row::run_arrival);
    if (!head.ordered<MakePlan>()) break;
    REQUIRE(failures < 10);
    head.plan(9);
    head.on(SavePoint{head.state.epoch, head.state.decided});
    if (head.state.saving) head.save_all();
    head.prepare_all();
    REQUIRE(head.load_all() == Row::loaded_all);
  }
  CHECK(failures == head.limits.strikes.most);
  // An excluded node is better than none.
  Head alone = head;
  alone.on(Lost{1, "gone"});
  alone.on(Lost{2, "gone"});
  CHECK(alone.ordered<MakePlan>()->nodes == std::vector<Life>{life});
  head.now += 2h;
  CHECK(head.on(Attached{life, "n3"}) == Row::run_arrival);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2, life});
}

namespace {

/// Both nodes report the loss, and their attempt ends.
void lose_pair(Head& head, Life one, Life other) {
  const auto epoch = head.state.epoch;
  CHECK(head.on(PairLost{one, other, epoch, "n1 has lost n2"}) == Row::pair_lost);
  CHECK(head.on(PairLost{other, one, epoch, "n2 has lost n1"}) == Row::of_the_past);
  head.on(Frozen{head.state.plan.members.front(), epoch, head.state.decided});
  if (head.state.phase == Phase::recover) head.freeze_all();
}

void begin_planned(Head& head) {
  head.plan();
  head.prepare_all();
  REQUIRE(head.load_all() == Row::loaded_all);
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
  begin_planned(head);
  head.now += 2s;
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{1, 2, 3});
}

TEST_CASE("a plan leaves out the node that has lost the most peers", "[actors]") {
  Head head;
  head.run();
  const auto epoch = head.state.epoch;
  head.on(PairLost{1, 2, epoch, "no path"});
  head.on(PairLost{1, 3, epoch, "no path"});
  CHECK(usable(head.state, head.now, head.limits) == std::vector<Life>{2, 3});
}

TEST_CASE("retries of a lost path do not count as failures if the run needs both nodes",
          "[actors]") {
  Head head({.fewest = 2, .most = 2, .steps = 100});
  head.begin();
  head.come(1);
  head.come(2);
  begin_planned(head);
  head.run_to(4);
  for (const auto wait : {2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s, 60s, 60s, 60s, 60s}) {
    lose_pair(head, 1, 2);
    REQUIRE(head.state.phase == Phase::suspend);
    CHECK(head.ordered<SetTimer>()->after == wait);
    head.now += wait;
    CHECK(head.on(Timeout{head.state.timer}) == Row::suspend_tries);
    begin_planned(head);
  }
  CHECK(head.state.phase == Phase::run);
  // The path works again; after the next loss the wait is short again.
  head.run_to(5);
  CHECK(head.state.lost_pairs.empty());
  lose_pair(head, 1, 2);
  CHECK(head.ordered<SetTimer>()->after == 2s);
}

TEST_CASE("a path that stays lost ends the run after suspend_patience", "[actors]") {
  Head head({.fewest = 2, .most = 2, .steps = 100, .suspend_patience = 5s});
  head.begin();
  head.come(1);
  head.come(2);
  begin_planned(head);
  for (const auto wait : {2s, 3s}) {
    lose_pair(head, 1, 2);
    REQUIRE(head.state.phase == Phase::suspend);
    CHECK(head.ordered<SetTimer>()->after == wait);
    head.now += wait;
    head.on(Timeout{head.state.timer});
    if (wait == 2s) begin_planned(head);
  }
  CHECK(head.answer.rows.back() == Row::suspend_over);
}

TEST_CASE("an attempt ended by a process death counts even if a lost path was reported",
          "[actors]") {
  Head head({.fewest = 1, .most = 2, .steps = 100});
  head.begin();
  head.come(1);
  head.come(2);
  begin_planned(head);
  CHECK(head.on(PairLost{1, 2, head.state.epoch, "no goodbye came"}) == Row::pair_lost);
  head.on(Lost{2, "signal 9"});
  CHECK(head.state.futile == 1);
  CHECK(head.state.lost_pairs.empty());
  head.come(3);
  head.freeze_all();
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
}

namespace {

/// Returns a head with three nodes in force at step 14, where two nodes keep each state.
Head with_keepers() {
  Head head({.fewest = 1, .most = 3, .steps = 100});
  head.run();
  head.on(KeptBy{head.state.epoch, {{1, 2}, {2, 3}, {3, 1}}});
  head.run_to(14);
  return head;
}

}  // namespace

TEST_CASE("a head waits for silent nodes that alone keep a part of the state", "[actors]") {
  Head head = with_keepers();
  head.on(Lost{2, "silent for 0.5 s", true});
  Head one = head;
  CHECK(one.freeze_all() == Row::recover_plans);  // Nodes 1 and 3 keep all states.
  head.on(Lost{3, "silent for 0.5 s", true});
  CHECK(head.freeze_all() == Row::recover_gathers);
  CHECK(head.ordered<SetTimer>()->after == 5s);
  CHECK_FALSE(head.ordered<MakePlan>());
  SECTION("until one of them is back") {
    head.now += 4s;
    CHECK(head.on(Attached{9, Head::name(3)}) == Row::recover_merges);
    CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 9});
  }
  SECTION("for gather_patience") {
    head.now += 5s;
    head.on(Timeout{head.state.timer});
    CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1});
  }
  SECTION("until it is known that they have ended") {
    CHECK(head.on(Lost{2, "signal 9"}) == Row::recover_gathers);
    CHECK(head.on(Lost{3, "signal 9"}) == Row::recover_plans);
    CHECK(head.ordered<MakePlan>());
  }
}

TEST_CASE("a head does not wait for silent nodes if a part of the state is lost for good",
          "[actors]") {
  Head head({.fewest = 1, .most = 3, .steps = 100});
  head.run();
  head.on(KeptBy{head.state.epoch, {{1, 2}, {2}, {3}}});
  head.on(Lost{2, "signal 9"});
  head.on(Lost{3, "silent for 0.5 s", true});
  CHECK(head.freeze_all() == Row::recover_plans);
  // Without copies no state is kept.
  Head bare({.fewest = 1, .most = 3, .steps = 100});
  bare.run();
  bare.on(Lost{2, "silent for 0.5 s", true});
  CHECK(bare.freeze_all() == Row::recover_plans);
}
