#include "actors/lead/straggler_watch.h"

#include <chrono>
#include <memory>
#include <vector>

#include "actors/rounds.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Returns the report of a device that plays its lane without a pause, 1 ms for each action.
RoundPlayed played_by(const Round& round, int device) {
  std::vector<DeviceSpan> spans;
  std::chrono::steady_clock::time_point now{std::chrono::hours(device)};
  for (const auto& action : round.schedule.lanes[static_cast<std::size_t>(device)]) {
    const auto start = now;
    now += std::chrono::milliseconds(1);
    spans.push_back({action, {start, now}});
  }
  return {.device = device,
          .spans = std::make_shared<const std::vector<DeviceSpan>>(std::move(spans))};
}

}  // namespace

TEST_CASE("a watched round has the times of all devices, and what held them up", "[actors]") {
  const auto rounds = Rounds::make({.stages = 2, .micro_batches = 4});
  REQUIRE(rounds);
  const auto round = rounds->at(7, 1);
  RoundUnderWay under_way({round, 7});
  under_way.add(played_by(*round, 0));
  CHECK_FALSE(timed_round(under_way, std::chrono::milliseconds(9)));
  auto second = played_by(*round, 1);
  second.held_up = {2};
  under_way.add(second);
  const auto timed = timed_round(under_way, std::chrono::milliseconds(9));
  REQUIRE(timed);
  CHECK(timed->first_step == 7);
  CHECK(timed->steps == 1);
  CHECK(timed->micro_batches_in_step == 4);
  CHECK(timed->took == std::chrono::milliseconds(9));
  REQUIRE(timed->devices.size() == 2);
  CHECK(timed->devices[0].size() == round->schedule.lanes[0].size());
  CHECK(timed->devices[1][0].start == std::chrono::hours(1));
  CHECK_FALSE(timed->devices[1][1].is_held_up);
  CHECK(timed->devices[1][2].is_held_up);
}

TEST_CASE("a round with other actions than those of a lane is not watched", "[actors]") {
  const auto rounds = Rounds::make({.stages = 2, .micro_batches = 4});
  REQUIRE(rounds);
  const auto round = rounds->at(0, 1);
  RoundUnderWay under_way({round, 0});
  under_way.add(played_by(*round, 0));
  auto wrong = played_by(*round, 0);
  wrong.device = 1;
  under_way.add(wrong);
  CHECK_FALSE(timed_round(under_way, std::chrono::milliseconds(9)));
}
