#include "actors/lead/step_history.h"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "actors/lead/step_event.h"
#include "actors/rounds.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

/// Returns a round of one step on two devices whose clocks differ by an hour. Each action of each
/// device takes 1 ms.
RoundUnderWay played(std::int64_t step, Clock::duration began) {
  static const auto rounds = *Rounds::make({.stages = 2, .micro_batches = 4});
  const auto round = rounds.at(step, 1);
  RoundUnderWay under_way({round, step});
  for (int device = 0; device < 2; ++device) {
    std::vector<DeviceSpan> spans;
    Clock::time_point now{began + device * 1h};
    for (const auto& action : round->schedule.lanes[static_cast<std::size_t>(device)]) {
      const auto start = now;
      now += 1ms;
      spans.push_back({action, {start, now}});
    }
    under_way.add({.device = device,
                   .spans = std::make_shared<const std::vector<DeviceSpan>>(std::move(spans))});
  }
  return under_way;
}

}  // namespace

TEST_CASE("a step is timed on its device, whenever it is noticed", "[actors]") {
  StepHistory history;
  history.begun(0, caf_shim::TimePoint{1h});
  const auto length = played(0, 5s).longest;
  // The first step has no step before it.
  CHECK(history.time_on_device(played(0, 5s)) == length);
  CHECK(history.time_on_device(played(1, 5s + 40ms)) == 40ms);
  CHECK(history.time_on_device(played(2, 5s + 90ms)) == 50ms);
  // After a pause, an evaluation or a save.
  history.step_begins(caf_shim::TimePoint{2h});
  CHECK(history.time_on_device(played(3, 60s)) == length);
  history.resumed(caf_shim::TimePoint{3h});
  CHECK(history.time_on_device(played(4, 90s)) == length);
  // A clock that was set back.
  CHECK_FALSE(history.time_on_device(played(5, 80s)));
}

TEST_CASE("the bubble of a round mixes no clocks", "[actors]") {
  const auto round = played(0, 5s);
  CHECK(round.longest < 1s);
  // Both devices work all the time.
  CHECK(round.busy == 2 * round.longest);
}
