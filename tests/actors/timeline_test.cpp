#include "schedules/simulate/timeline.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

std::optional<caf::actor> recorder_in(World& world) {
  for (const auto& living : world.living())
    if (living.name == "recorder") return living.actor;
  return {};
}

/// Returns the report of a round that ends at `end`.
RoundPlayed played_until(std::chrono::steady_clock::time_point end) {
  const std::vector<DeviceSpan> spans = {
      {schedules::forward(0, 0), {end - std::chrono::milliseconds(10), end}}};
  return {.spans = std::make_shared<const std::vector<DeviceSpan>>(spans)};
}

}  // namespace

TEST_CASE("a run tells its timeline after its first seconds, each half minute, and at its end",
          "[actors]") {
  LittleRun run(Piece::of("mlp", {.stages = 2, .micro_batches = 2}));
  Scene scene(run, 1);
  std::vector<schedules::Timeline> told;
  scene.spec().keep_timeline = [&](const schedules::Timeline& timeline) {
    told.push_back(timeline);
  };
  scene.begin();
  std::optional<caf::actor> recorder;
  while (!(recorder = recorder_in(scene.world()))) REQUIRE(scene.step());
  // The rounds of the run itself take milliseconds.
  const auto now = std::chrono::steady_clock::now();
  for (const int seconds : {0, 1, 3, 20, 32, 34, 40})
    caf_shim::post(*recorder, played_until(now + std::chrono::seconds(seconds)));
  recorder.reset();
  CHECK(scene.finish().outcome.how == Outcome::How::done);
  REQUIRE(told.size() == 3);  // After 3 s, after 34 s, and at the end.
  const auto ends_at = [&](const schedules::Timeline& timeline) {
    return std::ranges::max(timeline.spans, {}, &schedules::Span::end).end;
  };
  CHECK(ends_at(told[0]) == Approx(3).margin(0.5));
  CHECK(ends_at(told[1]) == Approx(34).margin(0.5));
  CHECK(ends_at(told[2]) == Approx(40).margin(0.5));
  CHECK(told[2].devices == 2);
}
