// Saves, and the last save of a run.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::reconciler;
using namespace std::chrono_literals;

TEST_CASE("a head makes one save at a time and tries it three times", "[actors]") {
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

TEST_CASE("a save point that is reported again after all nodes have continued is ignored",
          "[actors]") {
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

TEST_CASE("a run resumes from a save that completes after it was aborted", "[actors]") {
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
  head.prepare_all();
  CHECK(head.state.line == 10);
}

TEST_CASE("a run resumes from a save that completes while the next attempt prepares", "[actors]") {
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
  CHECK(head.ordered<Load>()->source.step == 10);
}

TEST_CASE("a new save is kept although a bad checkpoint has a higher step", "[actors]") {
  Head head;
  head.limits.keep = 1;
  head.run();
  head.state.saved = {30};  // An earlier head went back behind step 30.
  for (const std::int64_t step : {10, 20}) {
    head.run_to(step);
    head.on(SavePoint{1, step});
    CHECK(head.save_all() == Row::save_complete);
    CHECK_FALSE(head.state.saving);
    CHECK(head.state.saved == std::vector<std::int64_t>{step, 30});
  }
}

TEST_CASE("a run whose last step is saved is done even if a node is lost meanwhile", "[actors]") {
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

TEST_CASE("a run ends when its last step is saved, or when it is stopped", "[actors]") {
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
