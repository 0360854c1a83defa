#include "actors/decide/plan_times.h"

#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using Basis = PlanTimes::Basis;

/// A run of which the test sets the time of a step.
class TimedRun {
 public:
  /// Plays enough steps of this time for a measurement.
  void play(double seconds) {
    times.begin("attempt " + std::to_string(++attempts_));
    do times.add(seconds, seconds / 2);
    while (!times.measured());
    now += 1min;
  }
  /// Returns the name of the better plan, or "".
  std::string better(const ForecastPlan& in_force) const {
    const auto found = times.better(plans, in_force, now);
    return found ? plans[found->plan].name : "";
  }

  const ForecastPlan one{"one", 1, 1, 1, 0.10};
  const ForecastPlan two{"two", 2, 1, 2, 0.08};
  const ForecastPlan replicas{"replicas", 1, 1, 2, 0.06};
  std::vector<ForecastPlan> plans{replicas, two, one};
  PlanTimes times;
  Time now{};

 private:
  int attempts_ = 0;
};

}  // namespace

TEST_CASE("a plan is measured after some steps and some seconds", "[actors]") {
  PlanTimes times;
  for (int i = 0; i < 10; ++i) times.add(1, {});
  CHECK_FALSE(times.measured());
  times.add(1, {});
  REQUIRE(times.measured());
  CHECK(times.measured()->step == 1);
  CHECK_FALSE(times.measured()->computing);
  times.begin("one on beta");
  for (int i = 0; i < 100; ++i) times.add(0.01, {});
  CHECK_FALSE(times.measured());
}

TEST_CASE("attempts that end soon measure their plan together", "[actors]") {
  PlanTimes times;
  for (int attempt = 0; attempt < 4; ++attempt) {
    CHECK_FALSE(times.measured());
    times.begin("two on alpha beta");
    for (int step = 0; step < 3; ++step) times.add(100, {});  // It warms up.
    for (int step = 0; step < 2; ++step) times.add(2, {});
  }
  REQUIRE(times.measured());
  CHECK(times.measured()->step == 2);
}

TEST_CASE("a forecast that is off by more than a quarter is looked at again", "[actors]") {
  TimedRun run;
  CHECK_FALSE(run.times.is_off(0.01));
  run.play(0.1);
  CHECK_FALSE(run.times.is_off(0.09));
  CHECK(run.times.is_off(0.07));
  CHECK(run.times.is_off(0.15));
}

TEST_CASE("a plan over links that are slower than expected gives way to one node", "[actors]") {
  TimedRun run;
  run.plans = {run.replicas, run.one};
  run.play(1.4);
  CHECK(run.better(run.replicas) == "one");
  // Once one node is known to be slower still, the run stays.
  run.times.note("replicas", run.now);
  run.play(1.6);
  CHECK(run.better(run.one) == "replicas");
}

TEST_CASE("a run does not go back and forth between two plans", "[actors]") {
  TimedRun run;
  run.play(0.12);
  run.times.note("replicas", run.now);
  CHECK(run.better(run.replicas) == "one");
  run.play(0.125);
  run.times.note("one", run.now);
  // Replicas take 0.12 s: not better beyond doubt, whatever their forecast is. Two stages would
  // take 0.08 s * 1.25.
  CHECK(run.better(run.one) == "two");
  run.play(0.13);
  run.times.note("two", run.now);
  CHECK(run.better(run.two) == "replicas");
  run.play(0.12);
  run.times.note("replicas", run.now);
  CHECK(run.better(run.replicas).empty());
}

TEST_CASE("a gain within the spread of the steps is no reason for another plan", "[actors]") {
  TimedRun run;
  run.plans = {run.one};
  for (int i = 0; i < 60; ++i) run.times.add(0.11 + 0.04 * (i % 3), {});
  CHECK(run.better(run.two).empty());
  run.play(0.15);
  CHECK(run.better(run.two) == "one");
}

TEST_CASE("a run tries few plans because of their forecasts", "[actors]") {
  TimedRun run;
  run.play(1);
  for (int i = 0; i < 3; ++i) run.times.changed_over(Basis::forecast, run.now);
  run.times.changed_over(Basis::measurement, run.now);
  CHECK(run.better(run.two) == "one");
  run.times.changed_over(Basis::forecast, run.now);
  CHECK(run.better(run.two).empty());
  run.now += 2h;
  CHECK(run.better(run.two) == "one");
}

TEST_CASE("a run that changes its plan often waits for saves", "[actors]") {
  PlanTimes times;
  Time now{};
  for (int i = 0; i < 8; ++i) {
    CHECK(times.may_hurry(now));
    times.changed_over(i % 2 == 0 ? Basis::forecast : Basis::measurement, now += 1min);
  }
  CHECK_FALSE(times.may_hurry(now));
  CHECK(times.may_hurry(now + 1h));
}

TEST_CASE("plans are known for an hour, or until the nodes are others", "[actors]") {
  TimedRun run;
  CHECK_FALSE(run.times.knows_plans(run.now));
  run.times.note("one", run.now);  // It was not measured.
  CHECK_FALSE(run.times.knows_plans(run.now));
  run.play(0.1);
  run.times.note("one", run.now);
  CHECK(run.times.knows_plans(run.now + 1h));
  CHECK_FALSE(run.times.knows_plans(run.now + 1h + 1s));
  run.times.forget();
  CHECK_FALSE(run.times.knows_plans(run.now));
}

TEST_CASE("of equally fast plans the one that needs least memory is better", "[actors]") {
  TimedRun run;
  const ForecastPlan gpipe{"gpipe", 1, 1, 1, 0.02 * (1 - 1e-15), 200};
  const ForecastPlan seq{"seq", 1, 1, 1, 0.02, 100};
  const ForecastPlan slow{"slow", 1, 1, 1, 0.03, 10};
  run.plans = {gpipe, seq, slow, run.replicas};
  run.play(0.1);
  CHECK(run.better(run.replicas) == "seq");
}
