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

TEST_CASE("a spike ends the attempt, and the next one begins before it", "[actors]") {
  Head head;
  head.run();
  head.run_to(6);
  CHECK(head.on(SpikeFound{head.state.attempt, 7, "a high loss"}) == Row::spike_found);
  REQUIRE(head.ordered<SkipStep>());
  CHECK(head.ordered<SkipStep>()->step == 7);
  CHECK(head.on(StepSkipped{head.state.attempt, 7}) == Row::step_skipped);
  CHECK(head.state.phase == Phase::recover);
  // A state after the spiking step does not count, since that step is not done.
  head.kept = {{6, {}}, {7, {}}};
  head.end_attempt();
  head.plan();
  head.prepare_all();
  CHECK(head.ordered<Load>()->source == StateSource{StateSource::From::memory, 6, {}});
}

TEST_CASE("a spike that must not be left out ends the run", "[actors]") {
  Head head;
  head.run();
  head.run_to(6);
  CHECK(head.on(SpikeFound{head.state.attempt, 7, "a high loss", "too many"}) == Row::spike_ends);
  REQUIRE(head.ordered<End>());
  CHECK(head.ordered<End>()->how == End::How::failed);
  CHECK(head.ordered<End>()->why == "step 7: a high loss (given up: too many)");
}

TEST_CASE("spikes of earlier attempts are ignored", "[actors]") {
  Head head;
  head.run();
  head.run_to(6);
  CHECK(head.on(SpikeFound{0, 7, "a high loss"}) == Row::of_the_past);
  CHECK(head.on(StepSkipped{0, 7}) == Row::of_the_past);
  head.on(NodeLost{1, "gone"});
  CHECK(head.on(SpikeFound{head.state.attempt, 7, "a high loss"}) == Row::of_the_past);
  CHECK(head.on(StepSkipped{head.state.attempt, 7}) == Row::of_the_past);
}
