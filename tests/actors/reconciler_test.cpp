#include "actors/reconciler.h"

#include <algorithm>

#include "catch.h"

using namespace troupe::actors;
using namespace troupe::actors::reconciler;
using namespace std::chrono_literals;

namespace {

/// A head as far as it decides, and what it has ordered last.
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
    return on(JournalRead{JournalRead::Health::whole, records, std::move(saved)});
  }
  Row come(Life life) { return on(Attached{life, name(life)}); }
  static std::string name(Life life) { return "n" + std::to_string(life); }

  /// Up to the plan that the planner would make.
  Row plan(double rate = 1) {
    const auto* asked = ordered<MakePlan>();
    REQUIRE(asked);
    return on(PlanMade{asked->number, PlanChoice{asked->nodes, rate, "a plan"}, {}});
  }
  Row prepare_all() {
    Row row = Row::of_the_past;
    for (const Life life : std::vector<Life>(state.plan.members))
      row = on(reconciler::Prepared{life, state.epoch});
    if (row == Row::prepared_all) on(LineFound{state.epoch, kept});
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
  /// Three nodes, and a plan in force.
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
  Time now{1h};
  Answer answer;
  std::vector<Record> records;
  std::int64_t kept = 0;  // The newest step that nodes have in memory.
};

}  // namespace

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
  CHECK(head.ordered<Load>()->step == 0);
  CHECK(head.on(Loaded{1, 1, 0, "digest"}) == Row::loaded_some);
  CHECK(head.load_all() == Row::loaded_all);
  CHECK(head.recorded(Record::Kind::active));
  CHECK(head.ordered<Activate>()->nodes == std::vector<Life>{1, 2, 3});
  CHECK(head.state.phase == Phase::run);
}

TEST_CASE("a new run begins with fewer nodes once patience is over", "[actors]") {
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

TEST_CASE("a head that comes back adopts an epoch whose nodes play on", "[actors]") {
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

TEST_CASE("a node that an earlier head has stopped does not keep the one that adopts it waiting",
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

TEST_CASE("a head that comes back without all nodes recovers", "[actors]") {
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
  // One of them has begun a new life: it plays nothing any more.
  Head reborn = back();
  CHECK(reborn.on(Attached{33, "n2", 1, 0}) == Row::gather_lost);
  CHECK(reborn.state.phase == Phase::gather);
  CHECK(reborn.on(Attached{3, "n3", 1, 1}) == Row::gather_again);
  CHECK(reborn.ordered<Freeze>()->nodes == std::vector<Life>{1, 3});
  // None of them plays any more.
  Head idle;
  idle.records = head.records;
  idle.begin();
  CHECK(idle.on(Attached{11, "n1", 1, 0}) == Row::gather_waits);
  CHECK(idle.on(Attached{12, "n2", 1, 0}) == Row::gather_waits);
  CHECK(idle.on(Attached{13, "n3", 1, 0}) == Row::gather_again);
  CHECK(idle.ordered<MakePlan>()->nodes == std::vector<Life>{11, 12, 13});
}

TEST_CASE("a journal tells what happened to it", "[actors]") {
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

TEST_CASE("an epoch that was written down and never in force is not used again", "[actors]") {
  Head head;
  head.begin();
  for (const Life life : {1, 2, 3}) head.come(life);
  head.plan();  // Epoch 1 is on the disk, and the head dies.
  Head next;
  next.records = head.records;
  next.begin();
  for (const Life life : {1, 2, 3}) next.come(life);
  next.plan();
  CHECK(next.state.epoch == 2);
}

TEST_CASE("a planner that is late or finds nothing does not stop a run", "[actors]") {
  Head head;
  head.begin();
  for (const Life life : {1, 2, 3}) head.come(life);
  const auto number = head.ordered<MakePlan>()->number;
  Head none = head;
  CHECK(none.on(PlanMade{number, {}, "nothing fits"}) == Row::plan_none);
  CHECK(none.state.phase == Phase::suspend);
  CHECK(head.on(Timeout{head.state.timer}) == Row::plan_late);
  CHECK(head.state.plan.members == std::vector<Life>{1, 2, 3});
  CHECK(head.on(PlanMade{number, PlanChoice{{1}, 1, "too late"}, {}}) == Row::of_the_past);
}

TEST_CASE("a loss while an epoch is made aborts it, an arrival waits", "[actors]") {
  for (const int how_far : {0, 1, 2}) {
    Head head;
    head.begin();
    for (const Life life : {1, 2, 3}) head.come(life);
    if (how_far > 0) head.plan();
    if (how_far > 1) head.prepare_all();
    CHECK(head.come(4) == Row::arrival_under_way);
    CHECK(head.on(Lost{2, "gone"}) == Row::loss_under_way);
    CHECK((head.ordered<Abort>() != nullptr) == (how_far > 0));
    CHECK(head.recorded(Record::Kind::dead));
    head.freeze_all();
    const auto* asked = head.ordered<MakePlan>();
    REQUIRE(asked);
    CHECK(asked->nodes == std::vector<Life>{1, 3, 4});
  }
}

TEST_CASE("who cannot prepare or load is out of the next plan", "[actors]") {
  const auto prepared = [] {
    Head head;
    head.begin();
    for (const Life life : {1, 2, 3}) head.come(life);
    head.plan();
    return head;
  };
  Head head = prepared();
  CHECK(head.on(reconciler::PrepareFailed{2, 1, "no room"}) == Row::prepare_failed);
  CHECK(head.ordered<Abort>());
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 3});
  Head silent = prepared();
  silent.on(reconciler::Prepared{1, 1});
  silent.on(reconciler::Prepared{2, 1});
  CHECK(silent.on(Timeout{silent.state.timer}) == Row::prepare_failed);
  CHECK(silent.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2});
  Head loading = prepared();
  loading.prepare_all();
  CHECK(loading.on(LoadFailed{3, 1, 0, LoadFailed::Cause::node, "no file"}) ==
        Row::load_failed_node);
  CHECK(loading.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2});
  // Where too few are left, they are better than none.
  Head few = prepared();
  few.on(Lost{3, "gone"});
  few.freeze_all();
  few.plan();
  few.on(reconciler::PrepareFailed{2, few.state.epoch, "no room"});
  CHECK(few.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2});
}

TEST_CASE("a bad checkpoint is passed over for the one before it", "[actors]") {
  Head head;
  head.begin({10, 20});
  for (const Life life : {1, 2, 3}) head.come(life);
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->step == 20);
  CHECK(head.on(LoadFailed{1, 1, 20, LoadFailed::Cause::checkpoint, "a bit"}) ==
        Row::load_failed_checkpoint);
  CHECK(head.ordered<Load>()->step == 10);
  // Of the bad one, told before it was heard that it is bad.
  CHECK(head.on(Loaded{2, 1, 20, "late"}) == Row::of_the_past);
  head.on(Loaded{1, 1, 10, "one"});
  head.on(Loaded{2, 1, 10, "another"});
  // Nobody can say who is right.
  CHECK(head.on(Loaded{3, 1, 10, "a third"}) == Row::load_differs);
  CHECK(head.state.phase == Phase::halted);
}

TEST_CASE("a run goes on from what is in memory, where that is newer than what is saved",
          "[actors]") {
  const auto prepared = [](std::vector<std::int64_t> saved, std::int64_t kept) {
    Head head;
    head.begin(std::move(saved));
    for (const Life life : {1, 2, 3}) head.come(life);
    head.plan();
    head.kept = kept;
    head.prepare_all();
    return head;
  };
  CHECK(prepared({10, 20}, 15).ordered<Load>()->step == 20);
  CHECK(prepared({}, 25).ordered<Load>()->step == 25);
  Head head = prepared({10, 20}, 25);
  CHECK(head.ordered<Load>()->step == 25);
  // Where it is not there after all, no checkpoint is the worse for it.
  const LoadFailed gone{1, 1, 25, LoadFailed::Cause::checkpoint, "gone"};
  CHECK(head.on(gone) == Row::load_failed_checkpoint);
  CHECK(head.ordered<Load>()->step == 20);
  CHECK(head.state.saved == std::vector<std::int64_t>{10, 20});
  Head fresh = prepared({}, 25);
  CHECK(fresh.on(gone) == Row::load_failed_checkpoint);
  CHECK(fresh.ordered<Load>()->step == 0);
}

TEST_CASE("a node that reads other weights than most is passed over, and no checkpoint given up",
          "[actors]") {
  Head head;
  head.begin({10, 20});
  for (const Life life : {1, 2, 3}) head.come(life);
  head.plan();
  head.prepare_all();
  head.on(Loaded{1, 1, 20, "another"});
  head.on(Loaded{2, 1, 20, "one"});
  CHECK(head.on(Loaded{3, 1, 20, "one"}) == Row::load_differs);
  CHECK(head.recorded(Record::Kind::strike));
  CHECK(head.recorded(Record::Kind::aborted));
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{2, 3});
  CHECK(head.state.saved == std::vector<std::int64_t>{10, 20});
}

TEST_CASE("a loss freezes all, and the run goes on from the newest checkpoint", "[actors]") {
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
  CHECK(head.ordered<Load>()->step == 10);
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
  // Who does not say that it has stopped is dead.
  Head silent;
  silent.run();
  silent.on(Lost{1, "gone"});
  silent.on(Frozen{2, 1, 0});
  CHECK(silent.on(Timeout{silent.state.timer}) == Row::recover_waits);
  CHECK(silent.state.phase == Phase::suspend);
  CHECK_FALSE(silent.state.nodes.contains(3));
}

TEST_CASE("too few nodes suspend a run, and it ends once that lasts too long", "[actors]") {
  Head head;
  head.run();
  head.on(Lost{2, "gone"});
  head.on(Lost{3, "gone"});
  CHECK(head.freeze_all() == Row::recover_plans);
  CHECK(head.state.phase == Phase::suspend);
  CHECK(head.ordered<SetTimer>()->after == 24h);
  Head over = head;
  CHECK(over.on(Timeout{over.state.timer}) == Row::suspend_over);
  CHECK(over.ordered<End>()->code == 6);
  CHECK(head.on(Lost{1, "gone"}) == Row::suspend_waits);
  CHECK(head.come(5) == Row::suspend_waits);
  CHECK(head.come(6) == Row::suspend_enough);
  CHECK(head.state.phase == Phase::plan);
}

TEST_CASE("a spare may be lost, and a suspect is only told of", "[actors]") {
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

TEST_CASE("an arrival is used at a save point if that pays", "[actors]") {
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
  CHECK(head.ordered<Load>()->step == 11);  // No step is done twice.
  head.load_all();
  // Not again so soon.
  head.come(5);
  CHECK(head.plan(2.0) == Row::run_not_better);
}

TEST_CASE("a switch pays by its gain and by how long it lasts", "[actors]") {
  State state;
  state.begun = Time{1h};
  state.plan.rate = 1;
  const Limits limits{.steps = 100'000, .hold_time = 15s};
  const Time later{3h};
  const PlanChoice better{{1}, 1.1, ""};
  CHECK(pays(state, better, later, limits));
  CHECK_FALSE(pays(state, PlanChoice{{1}, 1.02, ""}, later, limits));
  // A node comes or goes every minute: it takes less than 2 min x 9 % for granted, which is less
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

TEST_CASE("a notice is used to leave at a boundary, if there is time", "[actors]") {
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
  CHECK(head.ordered<Load>()->step == 4);
  head.load_all();
  CHECK(head.ordered<Retire>()->life == 2);
  CHECK(head.on(Lost{2, "it went"}) == Row::run_spare_lost);
  CHECK(head.on(DrainAsked{"n3"}) == Row::drain_asked);
}

TEST_CASE("one save at a time, and three tries", "[actors]") {
  Head head;
  head.run();
  head.run_to(10);
  head.on(SavePoint{1, 10});
  CHECK(head.on(SavePoint{1, 12}) == Row::save_still_goes_on);
  const auto first = head.state.saving->save;
  CHECK(head.on(reconciler::SaveFailed{first, "no room"}) == Row::save_failed);
  CHECK(head.ordered<AbortSave>()->save == first);
  head.on(SavePoint{1, 14});
  CHECK(head.on(Timeout{head.state.save_timer}) == Row::save_failed);
  head.on(SavePoint{1, 16});
  CHECK(head.on(reconciler::SaveFailed{head.state.saving->save, "no room"}) == Row::save_given_up);
  CHECK(head.state.phase == Phase::run);
  CHECK(head.on(ShardsWritten{first}) == Row::of_the_past);
  head.on(SavePoint{1, 20});
  CHECK(head.on(ShardsWritten{head.state.saving->save}) == Row::save_written);
  CHECK(head.ordered<CommitSave>()->step == 20);
  CHECK_FALSE(head.recorded(Record::Kind::saved));
  CHECK(head.on(reconciler::Saved{head.state.saving->save, 20}) == Row::save_complete);
  CHECK(head.recorded(Record::Kind::saved));
}

TEST_CASE("a save point that is told again, after all have gone on, is none", "[actors]") {
  Head head;
  head.run();
  head.run_to(10);
  head.on(SavePoint{1, 10});
  head.save_all();
  head.run_to(14);
  head.on(StopAsked{});
  CHECK(head.on(SavePoint{1, 10}) == Row::of_the_past);
  CHECK_FALSE(head.state.saving);
  CHECK(head.on(SavePoint{1, 14}) == Row::save_begins);
}

TEST_CASE("a checkpoint that was complete when it was given up is gone on from", "[actors]") {
  Head head;
  head.run();
  head.on(SavePoint{1, 10});
  const auto save = head.state.saving->save;
  head.on(ShardsWritten{save});
  head.on(Lost{1, "signal 9"});
  CHECK(head.ordered<AbortSave>()->save == save);
  CHECK(head.on(reconciler::Saved{save, 10}) == Row::save_complete);
  CHECK(head.recorded(Record::Kind::saved));
  CHECK(head.state.phase == Phase::recover);
  head.freeze_all();
  head.plan();
  CHECK(head.state.line == 10);
}

TEST_CASE("a checkpoint that becomes complete while the next epoch prepares is gone on from",
          "[actors]") {
  Head head;
  head.run();
  head.on(SavePoint{1, 10});
  const auto save = head.state.saving->save;
  head.on(ShardsWritten{save});
  head.on(Lost{1, "signal 9"});
  head.freeze_all();
  head.plan();
  CHECK(head.state.line == 0);
  head.on(reconciler::Saved{save, 10});
  CHECK(head.prepare_all() == Row::prepared_all);
  CHECK(head.ordered<Load>()->step == 10);
}

TEST_CASE("what is saved counts, whatever newer checkpoint turns out to be bad", "[actors]") {
  Head head;
  head.limits.keep = 1;
  head.run();
  head.state.saved = {30};  // An earlier head has gone back behind it.
  for (const std::int64_t step : {10, 20}) {
    head.run_to(step);
    head.on(SavePoint{1, step});
    CHECK(head.save_all() == Row::save_complete);
    CHECK_FALSE(head.state.saving);
    CHECK(head.state.saved == std::vector<std::int64_t>{step, 30});
  }
}

TEST_CASE("a run whose last step is saved is done, whoever is lost before that is written down",
          "[actors]") {
  Head head;
  head.run();
  head.on(SavePoint{1, head.limits.steps});
  const auto save = head.state.saving->save;
  head.on(ShardsWritten{save});
  head.on(Lost{1, "signal 9"});
  head.on(reconciler::Saved{save, head.limits.steps});
  CHECK(head.freeze_all() == Row::recover_plans);
  CHECK(head.recorded(Record::Kind::ended));
  CHECK(head.state.phase == Phase::done);
}

TEST_CASE("a node that fails its step is restarted; a step that fails everywhere ends the run",
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

TEST_CASE("of two processes of one name the one that was there is told to begin anew", "[actors]") {
  Head head;
  head.begin();
  head.come(1);
  head.on(Attached{7, Head::name(1)});
  REQUIRE(head.ordered<Reject>());
  CHECK(head.ordered<Reject>()->life == 1);
  CHECK(head.state.nodes.size() == 1);
}

TEST_CASE("who fails too often is out for a while", "[actors]") {
  Head head({.fewest = 1, .most = 3, .steps = 100});
  head.run();
  Life life = 3;
  std::size_t failures = 0;
  for (;;) {
    head.run_to(head.state.decided + 1);
    head.on(reconciler::StepFailed{life, head.state.epoch, head.state.decided + 1, "broken"});
    ++failures;
    head.freeze_all();
    head.plan();
    head.prepare_all();
    REQUIRE(head.load_all() == Row::loaded_all);
    // Its daemon has started it again, by the same name.
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
  // It is better than nobody.
  Head alone = head;
  alone.on(Lost{1, "gone"});
  alone.on(Lost{2, "gone"});
  CHECK(alone.ordered<MakePlan>()->nodes == std::vector<Life>{life});
  head.now += 2h;
  CHECK(head.on(Attached{life, "n3"}) == Row::run_arrival);
  CHECK(head.ordered<MakePlan>()->nodes == std::vector<Life>{1, 2, life});
}

TEST_CASE("epochs that come to nothing slow a run down", "[actors]") {
  Head head({.fewest = 1, .most = 2, .steps = 100});
  head.begin();
  head.come(1);
  head.come(2);
  Life next = 3;
  for (int epoch = 0; epoch < 5; ++epoch) {
    head.plan();
    head.prepare_all();
    head.load_all();
    head.on(Lost{head.state.plan.members.back(), "gone"});
    head.come(next++);
    if (epoch < 4) CHECK(head.freeze_all() == Row::recover_plans);
  }
  CHECK(head.freeze_all() == Row::recover_futile);
  CHECK(head.ordered<SetTimer>()->after == 1s);
  // Who comes and goes meanwhile makes it no longer.
  const auto timer = head.state.timer;
  head.come(next);
  CHECK(head.on(Lost{next, "gone again"}) == Row::recover_merges);
  CHECK(head.state.timer == timer);
  head.on(Timeout{timer});
  CHECK(head.state.phase == Phase::plan);
}

TEST_CASE("a run ends when its last step is saved, or when it is told to", "[actors]") {
  Head head;
  head.run();
  head.run_to(100);
  head.on(SavePoint{1, 100});
  CHECK(head.ordered<reconciler::Save>()->meanwhile == Meanwhile::hold);
  Head unsaved = head;
  for (int tries = 0; tries < 3; ++tries)
    unsaved.on(reconciler::SaveFailed{unsaved.state.saving->save, "no room"});
  CHECK(unsaved.state.phase == Phase::halted);
  head.save_all();
  CHECK(head.ordered<End>()->code == 0);
  CHECK(head.recorded(Record::Kind::ended));
  CHECK(head.come(9) == Row::of_the_past);
  CHECK(head.ordered<Reject>()->life == 9);
  Head again;
  again.records = head.records;
  CHECK(again.begin() == Row::boot_again);
  CHECK(again.state.phase == Phase::done);

  Head stopped;
  stopped.run();
  stopped.run_to(5);
  CHECK(stopped.on(StopAsked{}) == Row::stop_asked);
  CHECK(stopped.ordered<AskSavePoint>());
  stopped.on(SavePoint{1, 6});
  stopped.save_all();
  CHECK(stopped.ordered<End>()->code == 75);
}

TEST_CASE("nothing is decided while nothing can be written down", "[actors]") {
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

TEST_CASE("a head that sees a later one ends at once", "[actors]") {
  Head head;
  head.run();
  CHECK(head.on(Deposed{1}) == Row::of_the_past);
  CHECK(head.on(Deposed{2}) == Row::deposed);
  CHECK(head.ordered<End>()->code == 76);
  CHECK(head.answer.records.empty());
}

TEST_CASE("every event in every state has an answer", "[actors]") {
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
          // Whoever is told of an epoch is told after it was written down.
          for (const auto& order : answer.orders)
            if (const auto* prepare = std::get_if<reconciler::Prepare>(&order))
              REQUIRE(std::ranges::any_of(answer.records, [&](const Record& record) {
                return record.kind == Record::Kind::epoch && record.epoch == prepare->epoch;
              }));
          // Every wait has an end.
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
