// Steps and saves.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;

TEST_CASE("a step that is done while its attempt ends counts", "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  head.on(NodeLost{1, "gone"});
  CHECK(head.on(StepDone{1, 5}) == Row::step_done);
  head.on(StepEntered{1, 5});
  head.kept = {{5, {}}};
  head.end_attempt();
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source == StateSource{StateSource::From::memory, 5, {}});
}

TEST_CASE("a step that a late ledger has once its attempt has ended is a source", "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  CHECK(head.on(StepDone{1, 5}) == Row::step_done);
  head.on(NodeLost{1, "gone"});
  head.kept = {{4, {}}, {5, {}}};
  head.end_attempt();
  head.state = react(head.state, StepEntered{0, 5}, head.now, head.limits).state;
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source == StateSource{StateSource::From::memory, 5, {}});
}

TEST_CASE("no attempt begins after a step that the ledger may not have", "[actors]") {
  Head head;
  head.run();
  head.run_to(4);
  CHECK(head.on(StepDone{1, 5}) == Row::step_done);
  head.on(StepEntered{1, 6});  // It cannot have more steps than are done.
  head.on(NodeLost{1, "gone"});
  head.kept = {{4, {}}, {5, {}}};
  head.end_attempt();
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source == StateSource{StateSource::From::memory, 4, {}});
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
