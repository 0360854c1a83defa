#include "schedules/plan/plan.h"

#include <string>

#include "catch.h"
#include "schedules/generators/registry.h"
#include "small_plans.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

namespace {

std::string error(const PlanRequest& request) { return make_plan(request).error().text; }

}  // namespace

TEST_CASE("a plan predicts the duration of a step", "[schedules]") {
  const Plan plan = planned(two_stages());
  CHECK(plan.step == Seconds((4 + 2 - 1) * (2 + 4)));
  CHECK(plan.bubble == Approx(1.0 / 5));
  CHECK(plan.rate == Approx(4.0 / 30));
  CHECK(plan.stages[1].forward == Seconds(2));
  CHECK(plan.stages[1].backward == Seconds(4));
  CHECK(plan.boundary_traffic == 4 * 2 * 3);
  CHECK(plan.reduction_traffic == 0);
}

TEST_CASE("a plan counts no gradients for units before which nothing is trained", "[schedules]") {
  PlanRequest request = two_stages();
  for (auto& unit : request.units) unit.boundary_back = 0;
  CHECK(planned(request).boundary_traffic == 4 * 3);
}

TEST_CASE("replicas divide the reduction groups and sum their gradients", "[schedules]") {
  PlanRequest request = two_stages();
  request.cluster = nodes(4, 1000);
  request.replicas.reset();
  const Plan plan = planned(request);
  REQUIRE(plan.replicas.size() == 2);
  CHECK(plan.devices() == 4);
  CHECK(plan.replicas[0].schedule->micro_batches == 2);
  CHECK(plan.step == Seconds((2 + 2 - 1) * (2 + 4)));
  CHECK(plan.seats[0].places == std::vector<DevicePlace>{{0, 0}, {2, 0}});
  CHECK(plan.reduction_traffic == 2 * (2 * (2 - 1) * 20));
}

TEST_CASE("a server takes longer to sum gradients than all-to-all", "[schedules]") {
  PlanRequest request = two_stages();
  request.stages = 1;
  request.replicas = 4;
  request.cluster = nodes(4, 1000);
  for (auto& node : request.cluster.nodes) node.outside = {.latency = 0, .bandwidth = 10};
  const auto step = [&](Exchange exchange) {
    request.exchange = exchange;
    return planned(request).step;
  };
  // The server's link carries 40 bytes of gradients of three other replicas both ways.
  const Seconds passes(2 * (2 + 4));
  CHECK(step(Exchange::server) - passes == Seconds(2 * 3 * 4));
  CHECK(step(Exchange::all_to_all) - passes == Seconds(2 * 3 * 4 / 4));
}

TEST_CASE("a replica with faster devices gets more groups", "[schedules]") {
  PlanRequest request = two_stages();
  request.stages = 1;
  request.replicas = 2;
  request.cluster.nodes[1].devices[0].speed = 3;
  const Plan plan = planned(request);
  CHECK(plan.replicas[0].places[0] == DevicePlace{1, 0});
  CHECK(plan.replicas[0].schedule->micro_batches == 3);
  CHECK(plan.replicas[1].schedule->micro_batches == 1);
  CHECK(plan.step == Seconds(12));
}

TEST_CASE("even replicas have the same number of groups", "[schedules]") {
  PlanRequest request = two_stages();
  request.even = true;
  request.stages = 1;
  request.replicas = 2;
  request.cluster.nodes[1].devices[0].speed = 3;
  for (const auto& replica : planned(request).replicas) CHECK(replica.schedule->micro_batches == 2);
  request.replicas.reset();
  request.cluster = nodes(3, 1000);
  CHECK(planned(request).replicas.size() == 2);
}

TEST_CASE("given boundaries are kept", "[schedules]") {
  PlanRequest request = two_stages();
  request.stages.reset();
  request.boundaries = {0, 1, 4};
  const Plan plan = planned(request);
  CHECK(plan.stages[0].last == 1);
  CHECK(plan.stages[1].first == 1);
}

TEST_CASE("boundaries that skip or repeat a unit are errors", "[schedules]") {
  PlanRequest request = two_stages();
  const auto with = [&](std::vector<int> boundaries) {
    request.boundaries = std::move(boundaries);
    return error(request);
  };
  CHECK(with({1, 4}) ==
        "boundaries [1, 4]: unit 0 (block 0) would be in no stage; begin with 0, go up, and end "
        "with 4");
  CHECK(with({0, 2, 3}) ==
        "boundaries [0, 2, 3]: unit 3 (block 3) would be in no stage; begin with 0, go up, and end "
        "with 4");
  CHECK(with({0, 3, 2, 4}) ==
        "boundaries [0, 3, 2, 4]: unit 2 (block 2) would be in two stages; begin with 0, go up, "
        "and end with 4");
  CHECK(with({0, 2, 2, 4}) ==
        "boundaries [0, 2, 2, 4]: stage 1 would have no unit; begin with 0, go up, and end with 4");
  CHECK(with({0, 2, 9}) ==
        "boundaries [0, 2, 9]: the model has 4 units, not 9; begin with 0, go up, and end with 4");
  CHECK(with({0, 1, 2, 4}) == "boundaries [0, 1, 2, 4]: they make 3 stages, but stages = 2");
}

TEST_CASE("an error names the stage that fits nowhere and the devices it would need",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.cluster = nodes(2, 110);
  CHECK(error(request) ==
        "stage 0 (block 0 to block 1) does not fit: node0:0 needs 129 B and has 110 B, 19 B too "
        "little; the fewest devices with 110 B that would do are 4, with stages = 4 and one "
        "replica");
  request.cluster = nodes(2, 20);
  CHECK(error(request) ==
        "stage 0 (block 0 to block 1) does not fit: node0:0 needs 129 B and has 20 B, 109 B too "
        "little; no number of devices with 20 B would do: use smaller micro-batches, "
        "recomputation or devices with more memory");
}

TEST_CASE("invalid plan requests are errors", "[schedules]") {
  PlanRequest request = two_stages();
  request.stages = 8;
  CHECK(error(request) ==
        "stages = 8 with chunks = 1 and replicas = 1 need 8 devices, and the cluster has 2; use "
        "fewer stages or replicas, or more chunks");
  request.cluster = nodes(8, 1000);
  CHECK(error(request) ==
        "stages = 8, but the model has 4 units and a stage needs at least one; use at most 4");
  request = two_stages();
  request.schedule = "1f2b";
  CHECK(error(request).starts_with("there is no schedule '1f2b'; the nearest are 1f1b"));
  request = two_stages();
  request.replicas = 8;
  CHECK(error(request) ==
        "replicas = 8, but a step has 4 reduction groups and a replica takes whole ones; use at "
        "most 4");
  request = two_stages();
  request.groups = 3;
  CHECK(error(request) == "4 micro-batches are not divisible into 3 reduction groups");
  request = two_stages();
  request.schedule = "zb-v";
  request.stages = 3;
  CHECK(error(request) ==
        "stages = 3 is not divisible by the 2 stages that a device holds with schedule zb-v");
  request = two_stages();
  request.cluster.nodes.clear();
  CHECK(error(request) == "the cluster has no devices");
  request = two_stages();
  request.units[1].forward = Seconds(-1);
  CHECK(error(request) == "unit \"block 1\": forward takes -1 seconds; want 0 to 1e+06");
}

TEST_CASE("a schedule written by the user is planned unchanged", "[schedules]") {
  PlanRequest request = two_stages();
  request.written = *generate("gpipe", {.stages = 2, .micro_batches = 4});
  request.written->name = "mine";
  const Plan plan = planned(request);
  CHECK(plan.schedule == "mine");
  CHECK(plan.seats[1].memory.activations == 4 * 10);

  request.stages = 4;
  CHECK(error(request) == "the schedule mine has 2 stages, but stages = 4");
  request.stages.reset();
  request.micro_batches = request.groups = 6;
  CHECK(error(request) ==
        "the schedule mine is for 4 micro-batches, which does not divide the 6 of a step");
  request.micro_batches = request.groups = 4;
  request.written->lanes[1].pop_back();
  CHECK(error(request).starts_with("the schedule mine is not valid:\nV2 completeness: "));
  request.written->lanes[1].push_back(backward(77, 3));
  CHECK(error(request).starts_with("the schedule mine is not valid:\nV1 placement: "));
  request.written->lanes.clear();
  CHECK(error(request) == "the schedule mine has no stages, micro-batches or devices");
}

TEST_CASE("unequal devices are ordered to suit the model", "[schedules]") {
  PlanRequest request = two_stages();
  request.units[3].forward = Seconds(4);
  request.units[3].backward = Seconds(8);
  request.cluster.nodes[0].devices[0].speed = 2;
  const Plan plan = planned(request);
  // The fast device comes last, for the block that costs as much as four others: 6 and 15 / 2
  // seconds, instead of 9 / 2 and 12 in the other order.
  CHECK(plan.replicas[0].places == std::vector<DevicePlace>{{1, 0}, {0, 0}});
  CHECK(plan.stages[0].last == 2);
}

TEST_CASE("auto is never slower than a named schedule", "[schedules]") {
  PlanRequest request = two_stages();
  for (int u = 4; u < 8; ++u) request.units.push_back(block(u));
  request.effort = 2'000'000;
  request.schedule = "auto";
  const Plan best = planned(request);
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-h2"}) {
    request.schedule = name;
    CHECK(best.step <= planned(request).step);
  }
}

TEST_CASE("the planner picks the fastest number of stages and replicas if none is given",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.stages.reset();
  const Plan plan = planned(request);
  // One stage takes 4 * 12 = 48 seconds, two stages take 30.
  CHECK(plan.stages.size() == 2);
  request.replicas.reset();
  // Two replicas of one stage have no bubble.
  CHECK(planned(request).replicas.size() == 2);
  CHECK(planned(request).step == Seconds(24));
}

TEST_CASE("outlooks plan for one or two nodes fewer or more", "[schedules]") {
  PlanRequest request = two_stages();
  const Plan plan = planned(request);
  const auto all = outlooks(request);
  REQUIRE(all.size() == 4);
  CHECK(all[0].nodes == std::vector<std::string>{"node1"});
  REQUIRE(all[0].plan.has_value());
  CHECK(all[0].plan->stages.size() == 1);
  CHECK(all[0].plan->step == Seconds(48));
  CHECK_FALSE(all[1].plan.has_value());
  CHECK(all[1].reason == "no node is left");
  CHECK(all[2].event == Outlook::Event::comes);
  CHECK(all[2].plan->step == plan.step);
  CHECK(all[3].nodes == std::vector<std::string>{"node0", "node0"});
}

TEST_CASE("an asynchronous run keeps its number of stages in outlooks", "[schedules]") {
  PlanRequest request = two_stages();
  request.schedule = "pipedream";
  const auto all = outlooks(request);
  CHECK_FALSE(all[0].plan.has_value());
  CHECK(all[0].reason.starts_with("stages = 2 with chunks = 1 and replicas = 1 need 2 devices"));
}
