#include "actors/decide/link_waits.h"

#include <chrono>
#include <string>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using namespace std::chrono_literals;

/// A step of two stages with one micro-batch. The second device's clock is an hour ahead. It waits
/// 3 ms for the forward pass, and the first device waits 5 ms for the gradient.
TimedRound step_at(std::chrono::nanoseconds begin) {
  const auto there = begin + 1h;
  return {.first_step = 0,
          .steps = 1,
          .micro_batches_in_step = 1,
          .took = 20ms,
          .devices = {{TimedAction{schedules::forward(0, 0), begin, begin + 2ms},
                       TimedAction{schedules::backward(0, 0), begin + 7ms, begin + 9ms},
                       TimedAction{schedules::update(0), begin + 9ms, begin + 10ms}},
                      {TimedAction{schedules::forward(1, 0), there + 3ms, there + 4ms},
                       TimedAction{schedules::backward(1, 0), there + 4ms, there + 6ms},
                       TimedAction{schedules::update(1), there + 6ms, there + 10ms}}}};
}

using Waits = std::vector<LinkWait>;

}  // namespace

TEST_CASE("a node's wait for another one is measured by its own clock", "[actors]") {
  LinkWaits waits;
  waits.attempt_begins({"alpha", "beta"}, 1);
  // The second device may have done something else before its first pass.
  CHECK(waits.add(step_at(0ms)) == Waits{{"beta", "alpha", 5ms}});
  CHECK(waits.add(step_at(10ms)) == Waits{{"alpha", "beta", 3ms}, {"beta", "alpha", 5ms}});
  // An evaluation lies between, and then a plan in which one node has both devices.
  waits.interrupted();
  CHECK(waits.add(step_at(60ms)) == Waits{{"beta", "alpha", 5ms}});
  waits.attempt_begins({"alpha", "alpha"}, 1);
  CHECK(waits.add(step_at(70ms)).empty());
  CHECK(waits.add(step_at(80ms)).empty());
}

TEST_CASE("what other inputs hold up is no wait for a node", "[actors]") {
  LinkWaits waits;
  waits.attempt_begins({"alpha", "beta"}, 1);
  auto step = step_at(0ms);
  step.devices[0][1].is_held_up = true;
  CHECK(waits.add(step).empty());
}

TEST_CASE("waits of replicas and of several steps are of a mean step", "[actors]") {
  LinkWaits waits;
  waits.attempt_begins({"alpha", "beta", "alpha", "beta"}, 2);
  auto round = step_at(0ms);
  round.steps = 2;
  round.devices.insert(round.devices.end(), {round.devices[0], round.devices[1]});
  CHECK(waits.add(round) == Waits{{"beta", "alpha", 5ms}});
}
