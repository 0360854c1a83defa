#include "schedules/operators.h"

#include "catch.h"
#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/text.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Builds a schedule of one device that holds all stages.
Schedule alone(int stages, int micro_batches, std::string_view lane) {
  return {.name = "alone",
          .stages = stages,
          .micro_batches = micro_batches,
          .routes = {Route(stages, 0)},
          .route_of = {0},
          .lanes = {parse_lane(lane).value()}};
}

std::string lane_of(const Schedule& schedule) { return to_string(schedule.lanes[0]); }

}  // namespace

TEST_CASE("splitting a backward pass puts W directly after I or its group", "[schedules]") {
  CHECK(lane_of(split_backward(alone(1, 2, "0F0 0F1 0B0 0B1"))) == "0F0 0F1 0I0 0W0 0I1 0W1");
  CHECK(lane_of(split_backward(alone(2, 2, "0F0 1F0 (0F1+1B0) 0B0 1F1 1I1 1W1 0B1"))) ==
        "0F0 1F0 (0F1+1I0) 1W0 0I0 0W0 1F1 1I1 1W1 0I1 0W1");
}

TEST_CASE("fusing joins adjacent I and W passes into B", "[schedules]") {
  CHECK(lane_of(fuse_backward(alone(1, 2, "0F0 0F1 0I0 0W0 0I1 0W1"))) == "0F0 0F1 0B0 0B1");
  CHECK(lane_of(fuse_backward(alone(1, 2, "0F0 0I0 0F1 0W0 0I1 0W1"))) == "0F0 0I0 0F1 0W0 0B1");
}

TEST_CASE("a stage that recomputes keeps its input and reruns F before its backward pass",
          "[schedules]") {
  CHECK(lane_of(with_recompute(alone(1, 2, "0F0 0F1 0I0 0W0 0B1"), {true})) ==
        "0F0' 0F1' 0R0 0I0 0W0 0R1 0B1");
  CHECK(lane_of(with_recompute(alone(2, 2, "0F0 1F0 (0F1+1B0) 0B0 1F1 1B1 0B1"), {false, true})) ==
        "0F0 1F0' 1R0 (0F1+1B0) 0B0 1F1' 1R1 1B1 0B1");
  const Schedule once = with_recompute(alone(1, 1, "0F0 0B0"), {true});
  CHECK(with_recompute(once, {true}) == once);
}

TEST_CASE("with_updates gives gradients early and updates weights at the end", "[schedules]") {
  CHECK(lane_of(with_updates(alone(2, 1, "0F0 1F0 1B0 0I0 0W0"))) ==
        "0F0 1F0 1B0 1A 0I0 0W0 0A 1O 0O");
  CHECK(lane_of(with_updates(alone(2, 2, "0F0 1F0 0F1 1F1 1B0 1I1 (1W1+0B0) 0B1"))) ==
        "0F0 1F0 0F1 1F1 1B0 1I1 (1W1+0B0) 1A 0B1 0A 1O 0O");
}

TEST_CASE("asynchronous updates follow every given number of backward passes", "[schedules]") {
  const Schedule passes = alone(1, 3, "0F0 0B0 0F1 0B1 0F2 0B2");
  CHECK(lane_of(with_update_every(passes, 1)) == "0F0 0B0 0O0 0F1 0B1 0O1 0F2 0B2 0O2");
  CHECK(lane_of(with_update_every(passes, 2)) == "0F0 0B0 0F1 0B1 0O1 0F2 0B2 0O2");
  CHECK(lane_of(with_updates(with_update_every(passes, 2))) ==
        "0F0 0B0 0F1 0B1 0A1 0O1 0F2 0B2 0A2 0O2");
  CHECK(with_update_every(with_updates(passes), 1) == with_update_every(passes, 1));
  CHECK(passes_only(with_updates(with_update_every(passes, 2))) == passes);
}

TEST_CASE("every operator turns a valid schedule into a valid one", "[schedules]") {
  for_each_small_schedule(4, [](const Schedule& schedule) {
    std::vector<bool> every_other(schedule.stages);
    for (int stage = 0; stage < schedule.stages; stage += 2) every_other[stage] = true;
    const Schedule updated = with_updates(schedule);
    CHECK(with_updates(updated) == updated);
    for (const Schedule& made :
         {updated, split_backward(schedule), fuse_backward(split_backward(schedule)),
          with_recompute(schedule, every_other),
          with_updates(with_recompute(split_backward(schedule), every_other)),
          with_updates(with_update_every(schedule, 2)), passes_only(updated)}) {
      const auto violations = check(made);
      INFO(to_text(made));
      if (!violations.empty()) FAIL(render(made, violations.front()));
    }
  });
}

TEST_CASE("numbered updates must end steps of equal size", "[schedules]") {
  const Schedule passes = alone(1, 4, "0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3");
  for (const int every : {1, 2, 4})
    for (const int wanted : {1, 2, 4}) {
      CAPTURE(every, wanted);
      CHECK(check_steps(with_update_every(passes, every), wanted).ok() == (every == wanted));
    }
  CHECK(check_steps(with_updates(passes), 2).ok());
}
