#include "apps/events/run_counters.h"

#include <string>

#include "apps/events/event.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::apps;

namespace {

Value step_in(int step, double seconds) {
  Value told = event("step", "r");
  told.set("step", step);
  told.set("samples", 8 * step);
  told.set("tokens", 512 * step);
  told.set("seconds", seconds);
  told.set("lr", 0.5);
  return told;
}

}  // namespace

TEST_CASE("a run's counters count what its events tell, and know nothing else", "[apps]") {
  RunCounters counters;
  CHECK_FALSE(counters.numbers().pace);
  // The head began when the run had done 40 steps.
  for (const auto& [step, seconds] : {std::pair(41, 0.02), {42, 0.04}, {41, 3000.0}, {42, 0.03}})
    counters.add(step_in(step, seconds));
  Value recovered = event("run.recovered", "r");
  recovered.set("redone", 2);
  recovered.set("seconds", 0.25);
  counters.add(recovered);
  Value saved = event("checkpoint.saved", "r");
  saved.set("time", 1.75e9);
  saved.set("seconds", 20);
  counters.add(saved);
  counters.add(event("warn", "r"));
  const auto numbers = counters.numbers();
  CHECK(numbers.steps == 4);
  CHECK(numbers.repeated == 2);
  CHECK(numbers.seen == 4 * 512);
  CHECK(numbers.recoveries == 1);
  CHECK(numbers.checkpoints == 1);
  CHECK(numbers.warnings == 1);
  CHECK(numbers.saved_at == 1.75e9);
  CHECK(numbers.lr == 0.5);
  CHECK_FALSE(numbers.rate);
  CHECK(numbers.pace == 0.04);
  CHECK(numbers.step_seconds.count == 4);
  CHECK(numbers.step_seconds.sum == Approx(3000.09));
  // Bounds include their values; what is above the last one counts in the sum alone.
  CHECK(numbers.step_seconds.counts[4] == 1);
  CHECK(numbers.step_seconds.counts[5] == 2);
  CHECK(numbers.recovery_seconds.counts[7] == 1);
  CHECK(numbers.save_seconds.counts[13] == 1);
  CHECK(numbers.link_waits.empty());
}

TEST_CASE("waits are counted for the links of the plan in force", "[apps]") {
  RunCounters counters;
  const auto waited = [](const std::string& to, double seconds) {
    Value wait;
    wait.set("from", "alpha");
    wait.set("to", to);
    wait.set("seconds", seconds);
    Value told = step_in(1, 0.5);
    told.set("waits", Value::List{wait});
    return told;
  };
  counters.add(waited("beta", 0.0002));
  counters.add(waited("beta", 0.02));
  counters.add(waited("gamma", 0.5));
  const auto before = counters.numbers();
  REQUIRE(before.link_waits.size() == 2);
  const auto& beta = before.link_waits.at({"alpha", "beta"});
  CHECK(beta.count == 2);
  CHECK(beta.sum == Approx(0.0202));
  CHECK(beta.counts[1] == 1);
  CHECK(beta.counts[7] == 1);
  CHECK_FALSE(before.planned_at);
  Value changed = event("plan.changed", "r");
  changed.set("time", 1.75e9);
  counters.add(changed);
  CHECK(counters.numbers().link_waits.empty());
  counters.add(waited("gamma", 0.5));
  CHECK(counters.numbers().link_waits.size() == 1);
  CHECK(counters.numbers().planned_at == 1.75e9);
  CHECK(counters.numbers().steps == 4);
}

TEST_CASE("a step without a duration counts, but says nothing of the pace", "[apps]") {
  RunCounters counters;
  for (int step = 1; step < 10; ++step) counters.add(step_in(step, 0));
  CHECK(counters.numbers().steps == 9);
  CHECK(counters.numbers().step_seconds.count == 0);
  CHECK_FALSE(counters.numbers().pace);
}
