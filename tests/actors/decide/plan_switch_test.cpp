#include "actors/decide/plan_switch.h"

#include "catch.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;
using namespace std::chrono_literals;

TEST_CASE("a switch pays if its gain until the next change exceeds its cost", "[actors]") {
  const SwitchLimits limits{.cost = 15s};
  NodeChanges changes(Time{1h});
  const Time later{3h};
  PlanSwitch change{.rate = 1,
                    .better_rate = 1.1,
                    .steps_left = 100'000,
                    .time_to_next_change = changes.time_to_next(later)};
  CHECK(pays(change, limits));
  change.better_rate = 1.02;
  CHECK_FALSE(pays(change, limits));
  // A node comes or goes every minute. A switch then counts on less than 2 min x 9 %, which is less
  // than 15 s.
  for (int minute = 59; minute >= 0; --minute) changes.add(later - minute * 1min);
  CHECK(changes.time_to_next(later) < 2min + 1s);
  change.time_to_next_change = changes.time_to_next(later);
  change.better_rate = 1.1;
  CHECK_FALSE(pays(change, limits));
  change.better_rate = 2;
  CHECK(pays(change, limits));
  // The last switch was just before.
  change.saves_since_last = 1;
  CHECK_FALSE(pays(change, limits));
  change.saves_since_last = 2;
  CHECK(pays(change, limits));
  // The run is nearly over.
  change.steps_left = 1;
  CHECK_FALSE(pays(change, limits));
}
