// The way from a plan to an attempt in force, and the events that may interrupt it.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;
using namespace std::chrono_literals;

TEST_CASE("a run waits if no plan fits its nodes", "[actors]") {
  Head head;
  head.begin();
  for (const Life life : {1, 2, 3}) head.come(life);
  const auto number = head.ordered<MakePlan>()->number;
  CHECK(head.on(PlanMade{number - 1, {}, "of the past"}) == Row::of_the_past);
  CHECK(head.on(PlanMade{number, {}, "nothing fits"}) == Row::plan_none);
  CHECK(head.state.phase == Phase::suspend);
  CHECK(head.on(PlanMade{number, PlanChoice{{1}, "too late"}}) == Row::of_the_past);
}

TEST_CASE("a loss while an attempt is prepared aborts it, and an arrival waits", "[actors]") {
  for (const int how_far : {0, 1, 2}) {
    Head head;
    head.begin();
    for (const Life life : {1, 2, 3}) head.come(life);
    if (how_far > 0) head.plan();
    if (how_far > 1) head.prepare_all();
    CHECK(head.come(4) == Row::arrival_under_way);
    CHECK(head.on(NodeLost{2, "gone"}) == Row::loss_under_way);
    CHECK((head.ordered<EndAttempt>() != nullptr) == (how_far > 0));
    CHECK(head.recorded(Record::Kind::dead));
    head.end_attempt();
    const auto* asked = head.ordered<MakePlan>();
    REQUIRE(asked);
    CHECK(asked->nodes == std::vector<Life>{1, 3, 4});
  }
}

TEST_CASE("a node that cannot prepare or load is not in the next plan", "[actors]") {
  const auto prepared = [] {
    Head head;
    head.begin();
    for (const Life life : {1, 2, 3}) head.come(life);
    head.plan();
    return head;
  };
  const auto planned_again = [](Head& head) {
    CHECK(head.ordered<EndAttempt>());
    CHECK(head.recorded(Record::Kind::aborted));
    CHECK(head.end_attempt() == Row::attempt_ended);
    const auto* asked = head.ordered<MakePlan>();
    REQUIRE(asked);
    return asked->nodes;
  };
  Head head = prepared();
  CHECK(head.on(decide::PrepareFailed{2, 1, "no room"}) == Row::prepare_failed);
  CHECK(planned_again(head) == std::vector<Life>{1, 3});
  Head silent = prepared();
  silent.on(decide::Prepared{1, 1});
  silent.on(decide::Prepared{2, 1});
  CHECK(silent.on(Timeout{silent.state.timer}) == Row::prepare_failed);
  CHECK(planned_again(silent) == std::vector<Life>{1, 2});
  Head loading = prepared();
  loading.prepare_all();
  CHECK(loading.on(LoadFailed{3, 1, 0, LoadFailed::Cause::node, "no file"}) ==
        Row::load_failed_node);
  CHECK(planned_again(loading) == std::vector<Life>{1, 2});
  Head failing = prepared();
  failing.prepare_all();
  CHECK(failing.on(PlayerFailed{3, 1, "no device"}) == Row::player_failed);
  CHECK(planned_again(failing) == std::vector<Life>{1, 2});
  // Nobody is to blame for states that do not come.
  Head late = prepared();
  late.prepare_all();
  CHECK(late.on(Timeout{late.state.timer}) == Row::load_late);
  CHECK_FALSE(late.recorded(Record::Kind::strike));
  CHECK(planned_again(late) == std::vector<Life>{1, 2, 3});
  CHECK(late.state.futile == 1);
  // An attempt that ends by itself is given up, too.
  Head ended = prepared();
  CHECK(ended.end_attempt() == Row::attempt_ended);
  CHECK(ended.recorded(Record::Kind::aborted));
  CHECK(ended.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2, 3});
  // If too few nodes would be left, the failed ones are kept.
  Head few = prepared();
  few.on(NodeLost{3, "gone"});
  few.end_attempt();
  few.plan();
  few.on(decide::PrepareFailed{2, few.state.attempt, "no room"});
  CHECK(planned_again(few) == std::vector<Life>{1, 2});
}

TEST_CASE("a bad checkpoint is skipped for the one before it", "[actors]") {
  Head head;
  head.begin({10, 20});
  for (const Life life : {1, 2, 3}) head.come(life);
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source.step == 20);
  CHECK(head.on(LoadFailed{1, 1, 20, LoadFailed::Cause::source, "a bit"}) ==
        Row::load_failed_source);
  CHECK(head.ordered<Load>()->source.step == 10);
  CHECK(head.on(Loaded{1, 20}) == Row::of_the_past);
  CHECK(head.on(Loaded{1, 10}) == Row::loaded);
  CHECK(head.ordered<Begin>()->step == 10);
}

TEST_CASE("a run resumes from memory if the state there is newer than the newest checkpoint",
          "[actors]") {
  const auto prepared = [](std::vector<std::int64_t> saved, std::int64_t kept) {
    Head head;
    head.committed = 25;
    head.begin(std::move(saved));
    for (const Life life : {1, 2, 3}) head.come(life);
    head.plan();
    head.kept = {{kept, {}}};
    head.prepare_all();
    return head;
  };
  CHECK(prepared({10, 20}, 15).ordered<Load>()->source.step == 20);
  CHECK(prepared({}, 25).ordered<Load>()->source.step == 25);
  Head head = prepared({10, 20}, 25);
  CHECK(head.ordered<Load>()->source.step == 25);
  // If the state is missing in memory, the checkpoints keep their standing.
  const LoadFailed gone{1, 1, 25, LoadFailed::Cause::source, "gone"};
  CHECK(head.on(gone) == Row::load_failed_source);
  CHECK(head.ordered<Load>()->source.step == 20);
  CHECK(head.state.saved == std::vector<std::int64_t>{10, 20});
  Head fresh = prepared({}, 25);
  CHECK(fresh.on(gone) == Row::load_failed_source);
  CHECK(fresh.ordered<Load>()->source.step == 0);
}

TEST_CASE("an attempt begins at the best source, and at the next one if that is bad", "[actors]") {
  using From = StateSource::From;
  Head head;
  head.committed = 30;
  head.owners = {0, 1};
  head.begin({10, 30});
  for (const Life life : {1, 2, 3}) head.come(life);
  head.plan();
  // Step 40 is not in the ledger, and nobody has the second state of step 25.
  head.on(decide::Prepared{1, 1, {{20, {0}}, {25, {0}}, {40, {0, 1}}}});
  head.on(decide::Prepared{2, 1, {}});
  CHECK(head.on(decide::Prepared{3, 1, {{20, {1}}}}) == Row::prepared_all);
  CHECK(head.ordered<Load>()->source == StateSource{From::checkpoint, 30, {}});
  // The state in memory is older than the newest checkpoint, but newer than the next one.
  const auto fails = [&](std::int64_t step) {
    return head.on(LoadFailed{0, 1, step, LoadFailed::Cause::source, "a bit"});
  };
  CHECK(fails(30) == Row::load_failed_source);
  CHECK(head.ordered<Load>()->source == StateSource{From::memory, 20, {0, 2}});
  CHECK(fails(20) == Row::load_failed_source);
  CHECK(head.ordered<Load>()->source == StateSource{From::checkpoint, 10, {}});
  CHECK(head.state.saved == std::vector<std::int64_t>{10});
  CHECK(fails(10) == Row::load_failed_source);
  CHECK(head.state.phase == Phase::ended);
  CHECK(head.ordered<End>()->why.find("no good checkpoint is left") != std::string::npos);
}

TEST_CASE("attempts that make no progress slow a run down", "[actors]") {
  Head head({.fewest = 1, .most = 2});
  head.begin();
  head.come(1);
  head.come(2);
  Life next = 3;
  for (int attempt = 0; attempt < 5; ++attempt) {
    head.plan();
    head.prepare_all();
    head.load();
    head.on(NodeLost{head.state.plan.members.back(), "gone"});
    head.come(next++);
    CHECK(head.end_attempt() == Row::attempt_ended);
    CHECK(head.answer.rows.back() == (attempt < 4 ? Row::recover_plans : Row::recover_futile));
  }
  CHECK(head.ordered<SetTimer>()->after == 1s);
  // Nodes that come and go meanwhile do not extend the wait.
  const auto timer = head.state.timer;
  head.come(next);
  CHECK(head.on(NodeLost{next, "gone again"}) == Row::recover_merges);
  CHECK(head.state.timer == timer);
  head.on(Timeout{timer});
  CHECK(head.state.phase == Phase::plan);
}

namespace {

/// Plays one node that is lost after each of these steps and returns, until the run ends. Returns
/// the number of losses.
int losses_until_end(Head& head, std::int64_t step, std::chrono::seconds between, int most) {
  head.begin();
  head.come(1);
  for (Life life = 1; life <= most; ++life) {
    if (head.state.phase == Phase::recover) head.on(Timeout{head.state.timer});
    head.plan();
    head.prepare_all();
    head.load();
    head.run_to(step);
    head.now += between;
    head.on(NodeLost{life, "killed"});
    head.end_attempt();
    if (head.state.phase == Phase::ended) return static_cast<int>(life);
    head.come(life + 1);
  }
  return most + 1;
}

}  // namespace

TEST_CASE("repeated steps are not progress and a crash loop ends the run", "[actors]") {
  Head head({.fewest = 1, .most = 1});
  CHECK(losses_until_end(head, 15, 1s, 30) == 9);
  CHECK(head.answer.rows.back() == Row::recover_hopeless);
  CHECK(head.ordered<End>()->code == 1);
  CHECK(head.ordered<End>()->why.find("8 attempts in a row ended before step 16 was done") !=
        std::string::npos);
  // The bound does not depend on the duration of attempts.
  Head slow({.fewest = 1, .most = 1});
  CHECK(losses_until_end(slow, 15, 3600s, 30) == 9);
}

TEST_CASE("attempts that end without any step end a run only after a minute", "[actors]") {
  Head quick({.fewest = 1, .most = 1});
  quick.begin();
  quick.come(1);
  quick.plan();
  quick.prepare_all();
  quick.load();
  quick.run_to(15);
  Life life = 1;
  const auto lose = [&](Duration between) {
    quick.now += between;
    quick.on(NodeLost{life, "killed"});
    quick.end_attempt();
    if (quick.state.phase == Phase::ended) return;
    quick.come(++life);
    if (quick.state.phase == Phase::recover) quick.on(Timeout{quick.state.timer});
    quick.plan();
  };
  for (int loss = 0; loss < 40; ++loss) lose(1s);
  CHECK(quick.state.phase == Phase::prepare);
  lose(30s);
  CHECK(quick.state.phase == Phase::ended);
}

TEST_CASE("a new step resets the count of earlier attempts", "[actors]") {
  Head head({.fewest = 1, .most = 1});
  head.begin();
  head.come(1);
  for (Life life = 1; life <= 30; ++life) {
    head.plan();
    head.prepare_all();
    head.load();
    head.run_to(15 + life / 4);
    head.on(NodeLost{life, "killed"});
    head.end_attempt();
    REQUIRE(head.come(life + 1) == Row::suspend_enough);
  }
}
