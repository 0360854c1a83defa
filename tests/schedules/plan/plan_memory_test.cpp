// The memory of a plan's devices.

#include <cstdint>
#include <string>

#include "catch.h"
#include "schedules/plan/plan.h"
#include "small_plans.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

TEST_CASE("a plan reports the memory that every stage holds", "[schedules]") {
  const Plan plan = planned(two_stages());
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].last == 2);
  REQUIRE(plan.seats.size() == 2);
  const StageMemory& first = plan.seats[0].memory;
  CHECK(first.weights == 2 * 20);  // One in use and one being written.
  CHECK(first.gradients == 20);
  CHECK(first.optimizer == 40);
  CHECK(first.activations == 2 * 10);  // Two micro-batches in flight.
  CHECK(first.buffers == 3 * 3);       // Two landing slots and one outgoing slot for one boundary.
  CHECK(first.total() == 129);
  CHECK(plan.seats[1].memory.activations == 10);
  CHECK(plan.memory_at(1) == 119);
  CHECK(plan.seats[0].in_flight == 2);
}

TEST_CASE("a stage is charged for the input activation that its first unit receives",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.units[1].stash_shared = 3;
  request.units[2].stash_shared = 4;
  const Plan plan = planned(request);
  CHECK(plan.seats[0].memory.activations == 2 * 10);
  CHECK(plan.seats[1].memory.activations == 10 + 4);
}

TEST_CASE("recomputation holds stage inputs and the activations of one micro-batch",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.recompute.everywhere = true;
  const Plan plan = planned(request);
  CHECK(plan.seats[0].memory.activations == 10 + 1);
  CHECK(plan.stages[0].backward == Seconds(2 + 4));
}

TEST_CASE("weight stashing holds a version for each micro-batch in flight", "[schedules]") {
  PlanRequest request = two_stages();
  request.schedule = "pipedream";
  request.stages = 4;
  request.cluster = nodes(4, 1000);
  request.micro_batches = 8;
  const Plan plan = planned(request);
  CHECK(plan.seats[0].weight_versions == 4 + 1);
  CHECK(plan.seats[3].weight_versions == 1 + 1);
  request.versions = VersionRule::newest;
  CHECK(planned(request).seats[0].weight_versions == 1 + 1);
}

TEST_CASE("tied units need a second copy only if they are on different devices", "[schedules]") {
  PlanRequest request = two_stages();
  request.units.front().tied = {TiedParameters{"table", 7, 7}};
  request.units.back().tied = {TiedParameters{"table", 7, 7}};
  const Plan straight = planned(request);
  CHECK(straight.seats[1].memory.weights == 2 * (20 + 7));
  CHECK(straight.seats[1].memory.gradients == 20);  // Each use has its own gradient.
  CHECK(straight.seats[1].memory.optimizer == 40);
  CHECK(straight.reduction_traffic == 2 * 7);
  request.schedule = "zb-v";
  request.stages = 4;
  const Plan folded = planned(request);
  REQUIRE(folded.seats.size() == 4);
  CHECK(folded.seats[1].stage == 3);  // Shares device 0 with stage 0.
  CHECK(folded.seats[1].memory.weights == 2 * 10);
  CHECK(folded.reduction_traffic == 0);
}

TEST_CASE("the next version reuses the memory of activations and extra gradient sums",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.holding.versions_in_the_making = 0;
  request.holding.gradient_sums = 2;
  for (auto& unit : request.units) {
    unit.weight = 25;
    unit.update_room = 70;
  }
  const Plan plan = planned(request);
  // The first unit's new weights replace its gradient, and the second unit needs 70. One gradient
  // sum of 20, and activations of 20 and 10, are free then.
  CHECK(plan.seats[0].workspace == 25 - 10 + 70 - 20 - 20);
  CHECK(plan.seats[1].workspace == 25 - 10 + 70 - 20 - 10);
  request.holding.gradient_sums = 5;
  CHECK(planned(request).seats[1].workspace == 0);
}

TEST_CASE("the owner of a tied parameter needs room for gradients from other devices",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.holding.versions_in_the_making = 0;
  request.units.front().tied = {TiedParameters{"table", 50, 50}};
  request.units.back().tied = {TiedParameters{"table", 50, 50}};
  const Plan apart = planned(request);
  CHECK(apart.seats[0].workspace == 2 * 50 - 20);
  CHECK(apart.seats[1].workspace == 0);
  request.schedule = "zb-v";
  request.stages = 4;
  const Plan folded = planned(request);
  CHECK(folded.seats[0].stage == 0);
  CHECK(folded.seats[0].workspace ==
        50 - folded.seats[0].memory.activations - folded.seats[1].memory.activations);
}

TEST_CASE("a unit's backward pass reuses the activations that later units freed", "[schedules]") {
  PlanRequest request = two_stages();
  request.units[0].workspace = 7;  // Minus 5 that unit 1 has freed.
  request.units[3].workspace = 4;
  const Plan plan = planned(request);
  CHECK(plan.seats[0].workspace == 2);
  CHECK(plan.seats[1].workspace == 4);
}
