#include "schedules/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "catch.h"
#include "core/json.h"
#include "random_problems.h"
#include "schedules/check.h"
#include "schedules/holdings.h"
#include "schedules/plan_format.h"
#include "schedules/registry.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

namespace {

UnitCost block(int number) {
  UnitCost unit;
  unit.name = "block " + std::to_string(number);
  unit.forward = Seconds(1);
  unit.backward = Seconds(2);
  unit.backward_input = Seconds(1);
  unit.backward_weight = Seconds(1);
  unit.parameters = 5;
  unit.weight = 10;
  unit.gradient = 10;
  unit.optimizer = 20;
  unit.stash = 5;
  unit.stash_input = 1;
  unit.stash_weight = 2;
  unit.boundary = 3;
  return unit;
}

Cluster nodes(int count, Bytes memory) {
  Cluster cluster;
  for (int n = 0; n < count; ++n) {
    ClusterNode node;
    node.name = "node" + std::to_string(n);
    node.devices = {{.speed = 1, .memory = memory}};
    cluster.nodes.push_back(node);
  }
  return cluster;
}

/// Four blocks on two devices, four micro-batches a step.
PlanRequest two_stages() {
  PlanRequest request;
  for (int u = 0; u < 4; ++u) request.units.push_back(block(u));
  request.cluster = nodes(2, 1000);
  request.micro_batches = 4;
  request.groups = 4;
  request.stages = 2;
  request.replicas = 1;
  return request;
}

Plan planned(const PlanRequest& request) {
  auto plan = make_plan(request);
  INFO((plan ? "" : plan.error().text));
  REQUIRE(plan.ok());
  return *plan;
}

std::string error(const PlanRequest& request) { return make_plan(request).error().text; }

/// Units, devices and wishes of all kinds.
PlanRequest random_request(Dice& dice) {
  PlanRequest request;
  const int units = dice.roll(1, 10);
  for (int u = 0; u < units; ++u) {
    UnitCost unit = block(u);
    unit.forward = Seconds(dice.roll(1, 5));
    unit.backward = 2 * unit.forward;
    unit.backward_input = unit.backward_weight = unit.forward;
    unit.weight = unit.gradient = dice.roll(0, 20);
    unit.optimizer = 2 * unit.weight;
    unit.stash = dice.roll(2, 20);
    unit.stash_input = dice.roll(0, 2);
    unit.stash_weight = dice.roll(0, 2);
    unit.workspace = dice.roll(0, 9);
    unit.boundary = dice.roll(1, 6);
    if (dice.one_in(6)) unit.update_room = dice.roll(0, 60);
    if (dice.one_in(6)) unit.tied = TiedParameters{"table", 10, 10, 5};
    request.units.push_back(unit);
  }
  for (int n = dice.roll(1, 3); n > 0; --n) {
    ClusterNode node;
    node.name = "node" + std::to_string(n);
    for (int d = dice.roll(1, 3); d > 0; --d)
      node.devices.push_back({.speed = dice.roll(1, 3) * 0.5, .memory = dice.roll(100, 900)});
    if (dice.one_in(3)) node.outside = {.latency = 0.5, .bandwidth = 4};
    request.cluster.nodes.push_back(node);
  }
  request.groups = dice.roll(1, 3);
  request.micro_batches = request.groups * dice.roll(1, 4);
  constexpr const char* names[] = {"1f1b",   "gpipe",   "zb-h1",     "zb-v",   "interleaved-v2",
                                   "hanayo", "chimera", "pipedream", "v-half", "auto"};
  request.schedule = names[dice.roll(0, 9)];
  if (request.schedule == "hanayo") request.chunks = 2;
  if (dice.one_in(2)) request.stages = dice.roll(1, 6);
  if (dice.one_in(2)) request.replicas = dice.roll(1, request.groups);
  if (dice.one_in(4)) request.recompute.everywhere = true;
  request.effort = 100'000;
  return request;
}

/// Replays every lane against the checker's own account of memory.
void require_within_memory(const PlanRequest& request, const Plan& plan) {
  for (const PlannedReplica& replica : plan.replicas) {
    MemoryBudget budget;
    for (const PlannedStage& stage : plan.stages) {
      MemoryBudget::Stage& held = budget.stages.emplace_back();
      for (int u = stage.first; u < stage.last; ++u) {
        held.stash += request.units[u].stash;
        held.weight += request.units[u].stash_weight;
      }
      held.input = request.units[stage.first].stash_input;
    }
    for (DevicePlace place : replica.places)
      budget.caps.push_back(std::min(at(request.cluster, place).memory,
                                     request.memory.value_or(std::numeric_limits<Bytes>::max())));
    for (const PlannedSeat& seat : plan.seats)
      budget.caps[seat.position] -= seat.memory.total() - seat.memory.activations;
    CheckRequest rules;
    rules.memory = budget;
    const auto violations = check(*replica.schedule, rules);
    INFO((violations.empty() ? "" : render(*replica.schedule, violations[0])));
    REQUIRE(violations.empty());
  }
}

/// What devices hold of single units is all that their seats hold, of each purpose.
void require_units_add_up(const PlanRequest& request, const Plan& plan) {
  std::map<std::tuple<int, int, Held>, Bytes> expected, found;
  int devices = 0;
  for (const PlannedReplica& replica : plan.replicas) {
    for (const PlannedSeat& seat : plan.seats) {
      const auto [weights, gradients, optimizer, activations, buffers] = seat.memory;
      const Bytes bytes[] = {weights, gradients, optimizer, activations, buffers};
      for (std::size_t k = 0; k < all_held.size(); ++k)
        if (bytes[k] > 0) expected[{devices + seat.position, seat.stage, all_held[k]}] = bytes[k];
    }
    devices += static_cast<int>(replica.places.size());
  }
  for (const Holding& holding : run_memory("", request, plan).holdings)
    found[{holding.device, holding.stage, holding.held}] += holding.bytes;
  REQUIRE(found == expected);
}

}  // namespace

TEST_CASE("a plan tells what every stage holds", "[schedules]") {
  const Plan plan = planned(two_stages());
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].last == 2);
  REQUIRE(plan.seats.size() == 2);
  const StageMemory& first = plan.seats[0].memory;
  CHECK(first.weights == 2 * 20);  // In use and in the making.
  CHECK(first.gradients == 20);
  CHECK(first.optimizer == 40);
  CHECK(first.activations == 2 * 10);  // Two micro-batches in flight.
  CHECK(first.buffers == 3 * 3);       // Two landing and one outgoing slot for one boundary.
  CHECK(first.total() == 129);
  CHECK(plan.seats[1].memory.activations == 10);
  CHECK(plan.memory_at(1) == 119);
  CHECK(plan.seats[0].in_flight == 2);
}

TEST_CASE("a plan tells how long a step takes", "[schedules]") {
  const Plan plan = planned(two_stages());
  CHECK(plan.step == Seconds((4 + 2 - 1) * (2 + 4)));
  CHECK(plan.bubble == Approx(1.0 / 5));
  CHECK(plan.rate == Approx(4.0 / 30));
  CHECK(plan.stages[1].forward == Seconds(2));
  CHECK(plan.stages[1].backward == Seconds(4));
  CHECK(plan.boundary_traffic == 4 * 2 * 3);
  CHECK(plan.reduction_traffic == 0);
}

TEST_CASE("replicas share the reduction groups and sum their gradients", "[schedules]") {
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

TEST_CASE("a server takes longer to sum gradients than all with all", "[schedules]") {
  PlanRequest request = two_stages();
  request.stages = 1;
  request.replicas = 4;
  request.cluster = nodes(4, 1000);
  for (auto& node : request.cluster.nodes) node.outside = {.latency = 0, .bandwidth = 10};
  const auto step = [&](Exchange exchange) {
    request.exchange = exchange;
    return planned(request).step;
  };
  // 40 bytes of gradients: the server has those of three others on its link, there and back.
  const Seconds passes(2 * (2 + 4));
  CHECK(step(Exchange::server) - passes == Seconds(2 * 3 * 4));
  CHECK(step(Exchange::all_to_all) - passes == Seconds(2 * 3 * 4 / 4));
}

TEST_CASE("a replica of faster devices gets more groups", "[schedules]") {
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

TEST_CASE("replicas that must be even have as many groups each", "[schedules]") {
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

TEST_CASE("boundaries that are given stand", "[schedules]") {
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

TEST_CASE("a model that fits nowhere: which stage, how many bytes, how many devices would do",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.cluster = nodes(2, 110);
  CHECK(error(request) ==
        "stage 0 (block 0 to block 1) does not fit: node0:0 needs 129 bytes and has 110, 19 too "
        "few; the fewest devices with 110 bytes that would do are 4, with stages = 4 and one "
        "replica");
  request.cluster = nodes(2, 20);
  CHECK(error(request) ==
        "stage 0 (block 0 to block 1) does not fit: node0:0 needs 129 bytes and has 20, 109 too "
        "few; no number of devices with 20 bytes would do: use smaller micro-batches, "
        "recomputation or devices with more memory");
}

TEST_CASE("requests that make no sense are errors", "[schedules]") {
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

TEST_CASE("a schedule that the user wrote is planned as it stands", "[schedules]") {
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

TEST_CASE("unequal devices are put in the order that suits the model", "[schedules]") {
  PlanRequest request = two_stages();
  request.units[3].forward = Seconds(4);
  request.units[3].backward = Seconds(8);
  request.cluster.nodes[0].devices[0].speed = 2;
  const Plan plan = planned(request);
  // The fast device comes last, for the block that takes as long as four others: 6 and 15 / 2
  // seconds, against 9 / 2 and 12 the other way round.
  CHECK(plan.replicas[0].places == std::vector<DevicePlace>{{1, 0}, {0, 0}});
  CHECK(plan.stages[0].last == 2);
}

TEST_CASE("recomputation holds inputs, and one micro-batch whole", "[schedules]") {
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

TEST_CASE("tied units cost a second copy only where they are apart", "[schedules]") {
  PlanRequest request = two_stages();
  request.units.front().tied = TiedParameters{"table", 7, 7, 14};
  request.units.back().tied = TiedParameters{"table", 7, 7, 14};
  const Plan straight = planned(request);
  CHECK(straight.seats[1].memory.weights == 2 * (20 + 7));
  CHECK(straight.seats[1].memory.optimizer == 40 + 14);
  CHECK(straight.reduction_traffic == 2 * 7);
  request.schedule = "zb-v";
  request.stages = 4;
  const Plan folded = planned(request);
  REQUIRE(folded.seats.size() == 4);
  CHECK(folded.seats[1].stage == 3);  // With stage 0 on device 0.
  CHECK(folded.seats[1].memory.weights == 2 * 10);
  CHECK(folded.reduction_traffic == 0);
}

TEST_CASE("auto is never slower than a schedule that has a name", "[schedules]") {
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

TEST_CASE("the fastest number of stages is found where it is left open", "[schedules]") {
  PlanRequest request = two_stages();
  request.stages.reset();
  const Plan plan = planned(request);
  // One stage: 4 * 12 = 48 seconds. Two stages: 30.
  CHECK(plan.stages.size() == 2);
  request.replicas.reset();
  // Two replicas of one stage have no bubble.
  CHECK(planned(request).replicas.size() == 2);
  CHECK(planned(request).step == Seconds(24));
}

TEST_CASE("no plan ever holds more than its devices have, and each is made twice the same",
          "[schedules]") {
  int plans = 0;
  for (int seed = 0; seed < 400; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed));
    const PlanRequest request = random_request(dice);
    INFO("seed " << seed);
    const auto plan = make_plan(request);
    if (!plan) continue;
    ++plans;
    require_within_memory(request, *plan);
    require_units_add_up(request, *plan);
    REQUIRE(to_json(to_value(request, *plan)) == to_json(to_value(request, *make_plan(request))));
    int micro_batches = 0;
    for (const PlannedReplica& replica : plan->replicas)
      micro_batches += replica.schedule->micro_batches;
    REQUIRE(micro_batches == request.micro_batches);
    REQUIRE(static_cast<int>(plan->replicas.size()) <= request.groups);
    REQUIRE(plan->stages.front().first == 0);
    REQUIRE(plan->stages.back().last == static_cast<int>(request.units.size()));
  }
  CHECK(plans > 150);
}

TEST_CASE("outlooks tell what one or two nodes less or more would mean", "[schedules]") {
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

TEST_CASE("the stages of an asynchronous run are part of its numbers and stay", "[schedules]") {
  PlanRequest request = two_stages();
  request.schedule = "pipedream";
  const auto all = outlooks(request);
  CHECK_FALSE(all[0].plan.has_value());
  CHECK(all[0].reason.starts_with("stages = 2 with chunks = 1 and replicas = 1 need 2 devices"));
}

TEST_CASE("plans and outlooks print as tables", "[schedules]") {
  const PlanRequest request = two_stages();
  const Plan plan = planned(request);
  CHECK(to_table(request, plan) == R"(1f1b, 2 stages, 1 replica, 2 devices, 4 micro-batches a step

stage  units  layers              devices  weights  gradients  optimizer  activations  buffers  total      of  forward  backward
    0   0..1  block 0 .. block 1  node0:0     40 B       20 B       40 B         20 B      9 B  129 B  1000 B   2.00 s    4.00 s
    1   2..3  block 2 .. block 3  node1:0     40 B       20 B       40 B         10 B      9 B  119 B  1000 B   2.00 s    4.00 s

step 30.0 s, bubble 20.0 %; steps back to back 30.0 s, bubble 20.0 %
0.133 micro-batches a second
traffic in a step: 24 B between stages, 0 B for sums of gradients
)");
  CHECK(to_table(plan, outlooks(request)) ==
        R"(if                         the run            stages  replicas    step     rate  because
node1 goes                 goes on, cut anew       1         1  48.0 s   62.5 %  stages = 2 with chunks = 1 and replicas = 1 need 2 devices, and the cluster has 1; use fewer stages or replicas, or more chunks
node0 and node1 go         waits                   -         -       -        -  no node is left
one more like node0 comes  goes on                 2         1  30.0 s  100.0 %
two more like node0 come   goes on                 2         1  30.0 s  100.0 %
)");
}

TEST_CASE("the formula behind every number can be read", "[schedules]") {
  PlanRequest request = two_stages();
  request.units[0].workspace = 50;
  request.units.front().tied = TiedParameters{"table", 7, 7, 14};
  request.units.back().tied = TiedParameters{"table", 7, 7, 14};
  const std::string text = explain(request, planned(request));
  const auto tells = [&](const std::string& line) {
    INFO(text);
    CHECK(text.find(line) != std::string::npos);
  };
  tells("weights = 2 versions (1 in use, 1 in the making) x 20 B = 40 B");
  tells(
      "weights = 2 versions (1 in use, 1 in the making) x 20 B + second copies of tied parameters "
      "14 B = 54 B");
  tells("optimizer = state of its parameters 40 B + second copies of tied parameters 14 B = 54 B");
  tells("at most 2 micro-batches in flight, of 10 B each = 20 B");
  tells(
      "buffers = 3 slots (2 landing, 1 outgoing) x 3 B for its boundaries with other devices + "
      "the largest workspace of a pass or an update 45 B = 54 B");
  tells("bubble = 1 - busy / (2 devices x step) = 20.0 %");
}

TEST_CASE("the next version lies where activations and further gradient sums were", "[schedules]") {
  PlanRequest request = two_stages();
  request.holding.versions_in_the_making = 0;
  request.holding.gradient_sums = 2;
  for (auto& unit : request.units) unit.update_room = 30;
  const Plan plan = planned(request);
  // Twice 30 without one sum of 20, and without 20 and 10 of activations.
  CHECK(plan.seats[0].workspace == 20);
  CHECK(plan.seats[1].workspace == 30);
  request.holding.gradient_sums = 4;
  CHECK(planned(request).seats[1].workspace == 0);
}

TEST_CASE("when a unit runs backward, later ones of its stage have given their stash back",
          "[schedules]") {
  PlanRequest request = two_stages();
  request.units[0].workspace = 7;  // Less 5 that unit 1 gave back.
  request.units[3].workspace = 4;
  const Plan plan = planned(request);
  CHECK(plan.seats[0].workspace == 2);
  CHECK(plan.seats[1].workspace == 4);
}

TEST_CASE("sizes and times print with three digits", "[schedules]") {
  CHECK(show(Bytes{1000}) == "1000 B");
  CHECK(show(Bytes{3} << 29) == "1.50 GiB");
  CHECK(show(Bytes{12'345'678}) == "11.8 MiB");
  CHECK(show(Seconds(0)) == "0 s");
  CHECK(show(Seconds(0.01234)) == "12.3 ms");
  CHECK(show(Seconds(1.5e-5)) == "15.0 us");
  CHECK(show(Seconds(1234)) == "1234 s");
  CHECK(percent(0.1124) == "11.2 %");
  CHECK(counted(1, "stage") == "1 stage");
  CHECK(counted(2, "micro-batch", "es") == "2 micro-batches");
}

TEST_CASE("a plan as a tree has a number for all that the table shows", "[schedules]") {
  const PlanRequest request = two_stages();
  const Plan plan = planned(request);
  const Value tree = to_value(request, plan);
  CHECK(tree.find("step_seconds")->number() == 30);
  CHECK(*tree.find("devices")->integer() == 2);
  const Value& seat = tree.find("seats")->list()->front();
  CHECK(*seat.find("bytes")->find("total")->integer() == 129);
  CHECK(*seat.find("devices")->list()->front().text() == "node0:0");
  CHECK(tree.find("stages")->list()->size() == 2);
  const Value after = to_value(plan, outlooks(request));
  CHECK(after.list()->front().find("plan")->find("rate_ratio")->number() == Approx(0.625));
  CHECK(*(*after.list())[1].find("reason")->text() == "no node is left");
}
