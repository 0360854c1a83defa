#include "schedules/simulate/simulate.h"

#include <limits>

#include "catch.h"
#include "schedules/operators.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Two devices, two micro-batches. By default F takes 1 and B takes 2.
Schedule two_devices() {
  return read(
      "sched 1\nname two\ndevices 2 stages 2 microbatches 2\nroute 0: 0 1\n"
      "d0: 0F0 0F1 0B0 0B1\n"
      "d1: 1F0 1B0 1F1 1B1\n");
}

Costs costs_for(int stages) {
  Costs costs;
  costs.stages.resize(static_cast<std::size_t>(stages));
  return costs;
}

}  // namespace

TEST_CASE("each action starts when its device and its input are ready", "[schedules]") {
  auto costs = costs_for(2);
  costs.link.latency = 0.5;
  const auto simulation = play(two_devices(), costs);
  // d0: F0 0-1, F1 1-2, B0 waits for 1B0 (4.5) until 5-7, B1 waits for 1B1 (7.5) until 8-10.
  // d1: F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5, B1 5.5-7.5.
  CHECK(simulation.makespan == 10);
  const auto& lane = simulation.lanes[0];
  CHECK(lane[2].start == 5);
  CHECK(lane[2].end == 7);
  CHECK(lane[2].wait == Wait::gradient);
  CHECK(lane[2].waited == 3);
  CHECK(simulation.lanes[1][0].start == 1.5);
  CHECK(simulation.lanes[1][0].wait == Wait::activation);

  const auto& first = simulation.devices[0];
  CHECK(first.busy == 6);
  CHECK(first.idle.gradient == 4);
  CHECK(first.idle.finished == 0);
  CHECK(first.span == 10);
  const auto& second = simulation.devices[1];
  CHECK(second.idle.activation == 1.5);
  CHECK(second.idle.finished == 2.5);
  CHECK(second.span == 6);
  CHECK(simulation.bubble == Approx(1 - 12.0 / 20));
  CHECK(simulation.critical_path ==
        std::vector<Place>{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {1, 3}, {0, 3}});
  CHECK(lane[1].slack == Approx(2));  // 1F1 starts at 4.5; its input arrives at 2.5.
  CHECK(lane[2].slack == Approx(1));  // 0B1 starts at 8.
  CHECK(simulation.deepest_queue == 1);
}

TEST_CASE("without a barrier a device starts its next step when it has finished this one",
          "[schedules]") {
  const auto schedule = make("zb-h2", 2, 4);
  const auto simulation = play(schedule, unit_costs(schedule));
  CHECK(simulation.makespan == 13);
  CHECK(simulation.period == 12);
  CHECK(simulation.bubble == Approx(1.0 / 13));
  CHECK(simulation.steady_bubble == 0);
}

TEST_CASE("a message takes the latency and transfer time of its link", "[schedules]") {
  auto costs = costs_for(2);
  costs.stages[0].boundary = 6;
  costs.links = {{{}, {.latency = 0.25, .bandwidth = 4}}, {{.latency = 3}, {}}};
  const auto simulation = play(two_devices(), costs);
  CHECK(simulation.lanes[1][0].start == 1 + 0.25 + 1.5);
  CHECK(simulation.lanes[0][2].start == simulation.lanes[1][1].end + 3);
}

TEST_CASE("where nothing is trained before a stage, no gradient takes time to travel",
          "[schedules]") {
  auto costs = costs_for(2);
  costs.stages[0].boundary = costs.stages[0].boundary_back = 6;
  costs.links = {{{}, {.bandwidth = 4}}, {{.latency = 0.25, .bandwidth = 4}, {}}};
  const auto with = play(two_devices(), costs);
  CHECK(with.lanes[0][2].start == with.lanes[1][1].end + 0.25 + 1.5);
  costs.stages[0].boundary_back = 0;
  const auto without = play(two_devices(), costs);
  CHECK(without.lanes[1][0].start == with.lanes[1][0].start);
  CHECK(without.lanes[0][2].start == without.lanes[1][1].end + 0.25);
}

TEST_CASE("a device's slowness scales its passes and every action costs a launch", "[schedules]") {
  auto costs = costs_for(2);
  costs.slowness = {1, 3};
  costs.launch = 0.125;
  const auto simulation = play(two_devices(), costs);
  CHECK(simulation.lanes[0][0].end == 1.125);
  CHECK(simulation.lanes[1][0].end == 1.125 + 3.125);
  CHECK(simulation.devices[0].busy == 2 * 1.125 + 2 * 2.125);
}

TEST_CASE("the members of a group start and end together", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname group\ndevices 1 stages 1 microbatches 2\nroute 0: 0\n"
      "d0: 0F0 (0F1+0B0) 0B1\n");
  auto costs = costs_for(1);
  const auto apart = play(schedule, costs);
  CHECK(apart.lanes[0][1].start == 1);
  CHECK(apart.lanes[0][1].end == 4);
  CHECK(apart.lanes[0][2].start == 1);
  CHECK(apart.makespan == 6);
  CHECK(apart.devices[0].busy == 6);
  CHECK(apart.devices[0].peak == 2);
  CHECK(apart.devices[0].peak_position == 1);

  costs.overlap = 1;
  CHECK(play(schedule, costs).makespan == 5);
}

TEST_CASE("an update waits for the reduction but other work does not", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname reduce\ndevices 1 stages 2 microbatches 1\nroute 0: 0 0\n"
      "d0: 0F0 1F0 1B0 1A 0B0 0A 1O 0O\n");
  auto costs = costs_for(2);
  costs.stages[0].reduce = 2;
  costs.stages[1].reduce = 5;
  costs.stages[0].update = costs.stages[1].update = 0.5;
  const auto simulation = play(schedule, costs);
  CHECK(simulation.lanes[0][3].start == 4);   // 1A starts.
  CHECK(simulation.lanes[0][4].start == 4);   // 0B0 starts at the same time.
  CHECK(simulation.lanes[0][5].start == 9);   // 0A waits for the reduction engine.
  CHECK(simulation.lanes[0][6].start == 9);   // 1O
  CHECK(simulation.lanes[0][7].start == 11);  // 0O
  CHECK(simulation.makespan == 11.5);
  CHECK(simulation.devices[0].idle.reduction == 3 + 1.5);
}

TEST_CASE("an update waits for all devices that hold its stage", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname both\ndevices 2 stages 1 microbatches 3\nroute 0: 0\nroute 1: 1\n"
      "cycle: 0 1 1\n"
      "d0: 0F0 0B0 0A 0O\n"
      "d1: 0F1 0F2 0B1 0B2 0A 0O\n");
  auto costs = costs_for(1);
  costs.stages[0].reduce = 1;
  const auto simulation = play(schedule, costs);
  CHECK(simulation.lanes[1][5].start == 7);
  CHECK(simulation.lanes[0][3].start == 7);
}

TEST_CASE("a message waits for a landing slot", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname slots\ndevices 2 stages 2 microbatches 3\nroute 0: 0 1\n"
      "d0: 0F0 0F1 0F2 0B0 0B1 0B2\n"
      "d1: 1F0 1F1 1F2 1B0 1B1 1B2\n");
  auto costs = costs_for(2);
  costs.link.latency = 2;
  CHECK(play(schedule, costs).lanes[1][1].start == 4);
  costs.landing_slots = 1;
  // 1F0 runs from 3 to 4; only then may 0F1's output leave.
  const auto simulation = play(schedule, costs);
  CHECK(simulation.lanes[1][1].start == 6);
  CHECK(simulation.lanes[1][1].wait == Wait::credit);
  CHECK(simulation.devices[1].idle.credit == 4);
}

TEST_CASE("activations are held from F to the last pass that needs them", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname held\ndevices 1 stages 1 microbatches 3\nroute 0: 0\n"
      "d0: 0F0 0F1 0I0 0F2 0W0 0I1 0I2 0W1 0W2\n");
  auto costs = costs_for(1);
  costs.stages[0].activations = 8;
  costs.stages[0].weight_activations = 2;
  auto simulation = play(schedule, costs);
  CHECK(simulation.devices[0].peak == 18);  // 0W0 has not freed its 2 yet.
  CHECK(simulation.devices[0].peak_position == 3);

  costs.stages[0].weight_activations = 8;
  simulation = play(schedule, costs);
  CHECK(simulation.devices[0].peak == 24);
}

TEST_CASE("a checkpointed pass holds only its input until recomputation", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname again\ndevices 1 stages 1 microbatches 3\nroute 0: 0\n"
      "d0: 0F0' 0F1' 0F2' 0R0 0B0 0R1 0B1 0R2 0B2\n");
  auto costs = costs_for(1);
  costs.stages[0].activations = 8;
  costs.stages[0].weight_activations = 8;
  costs.stages[0].input_activations = 1;
  const auto simulation = play(schedule, costs);
  CHECK(simulation.devices[0].peak == 10);
  CHECK(simulation.devices[0].peak_position == 3);
  CHECK(simulation.makespan == 12);
}

TEST_CASE("an error for a deadlock names each waiting device and the pass it waits for",
          "[schedules]") {
  auto schedule = two_devices();
  std::swap(schedule.lanes[0][1], schedule.lanes[0][2]);
  std::swap(schedule.lanes[1][1], schedule.lanes[1][2]);
  const auto simulation = simulate(schedule, costs_for(2));
  REQUIRE_FALSE(simulation.ok());
  CHECK(simulation.error().text ==
        "schedule 'two': device 0 waits forever at action 1, 0B0, for 1B0 of device 1\n"
        "device 1 waits forever at action 1, 1F1, for 0F1 of device 0");
}

TEST_CASE("an error names a pass that is missing or listed after its use", "[schedules]") {
  auto schedule = two_devices();
  schedule.lanes[1].pop_back();
  CHECK(simulate(schedule, costs_for(2)).error().text ==
        "schedule 'two': device 0 waits forever at action 3, 0B1, for 1B1 of device 1, which is "
        "not in its lane");
  schedule = two_devices();
  std::swap(schedule.lanes[1][0], schedule.lanes[1][1]);
  CHECK(simulate(schedule, costs_for(2)).error().text ==
        "schedule 'two': device 0 waits forever at action 2, 0B0, for 1B0 of device 1\n"
        "device 1 waits forever at action 0, 1B0, for 1F0, which comes later in its own lane");
}

TEST_CASE("a schedule whose ids are out of range is an error", "[schedules]") {
  const auto error = [](const Schedule& schedule) {
    const auto simulation = simulate(schedule, costs_for(2));
    REQUIRE_FALSE(simulation.ok());
    return simulation.error().text;
  };
  auto schedule = two_devices();
  schedule.lanes[0][0].stage = 7;
  CHECK(error(schedule) == "device 0 lists 7F0, but schedule 'two' has no such stage");
  schedule = two_devices();
  schedule.lanes[0][0].micro_batch = 9;
  CHECK(error(schedule) == "device 0 lists 0F9, but schedule 'two' has no such micro-batch");
  schedule = two_devices();
  schedule.lanes[0][0].stage = 1;
  CHECK(error(schedule) == "device 0 lists 1F0, but schedule 'two' places it on device 1");
  schedule = two_devices();
  schedule.lanes[0].push_back(give(1));
  CHECK(error(schedule) == "device 0 lists 1A, but schedule 'two' does not place that stage there");
  schedule = two_devices();
  schedule.micro_batches = 1 << 30;
  CHECK(error(schedule) ==
        "schedule 'two': has 8 actions, too few for 2 stages and 1073741824 micro-batches");
  schedule = two_devices();
  schedule.routes[0][1] = 2;
  CHECK(error(schedule) == "schedule 'two': a route leads to device 2 of 2");
  schedule = two_devices();
  schedule.route_of = {0, 1};
  CHECK(error(schedule) == "schedule 'two': a micro-batch takes route 1 of 1");
}

TEST_CASE("invalid costs are errors", "[schedules]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const auto error = [](const Costs& costs) {
    const auto simulation = simulate(two_devices(), costs);
    REQUIRE_FALSE(simulation.ok());
    return simulation.error().text;
  };
  CHECK(error(costs_for(3)) == "costs.stages has 3 entries; wanted: 2");
  auto costs = costs_for(2);
  costs.stages[1].forward = -1;
  CHECK(error(costs) == "costs of stage 1: forward is -1; wanted: 0 to 1e18");
  costs.stages[1].forward = nan;
  CHECK(error(costs) == "costs of stage 1: forward is no number; wanted: 0 to 1e18");
  costs.stages[1].forward = infinite;
  CHECK(error(costs) == "costs of stage 1: forward is infinite; wanted: 0 to 1e18");
  costs = costs_for(2);
  costs.stages[0].weight_activations = 2;
  CHECK(error(costs) ==
        "costs of stage 0: weight_activations is 2, but it is a part of activations, which is 1");
  costs = costs_for(2);
  costs.link.bandwidth = 0;
  CHECK(error(costs) == "costs.link: bandwidth is 0; wanted: 1e-9 or more");
  costs = costs_for(2);
  costs.links = {{{}, {}}};
  CHECK(error(costs) == "costs.links has 1 entries; wanted: 2");
  costs = costs_for(2);
  costs.slowness = {1, 0};
  CHECK(error(costs) == "costs.slowness holds 0; wanted: more than 0, at most 1e6");
  costs = costs_for(2);
  costs.overlap = 1.5;
  CHECK(error(costs) == "costs.overlap is 1.5; wanted: 0 to 1");
  costs = costs_for(2);
  costs.landing_slots = -1;
  CHECK(error(costs) == "costs.landing_slots is -1; wanted: 1 to 1024, or 0 for no bound");
}

TEST_CASE("a simulator times other orders of the same passes", "[schedules]") {
  const auto schedule = make("1f1b", 4, 8);
  auto simulator = Simulator::make(schedule, unit_costs(schedule));
  REQUIRE(simulator.ok());
  CHECK(simulator->makespan(schedule.lanes) == 33);
  CHECK(simulator->makespan(make("seq", 4, 8).lanes) == 96);
  auto stuck = schedule.lanes;
  std::swap(stuck[3][0], stuck[3][1]);
  CHECK_FALSE(simulator->makespan(stuck).has_value());
  CHECK(simulator->makespan(schedule.lanes) == 33);
  CHECK(simulator->period(schedule.lanes) == 33);
}

TEST_CASE("a summary reports both bubbles and the memory peaks", "[schedules]") {
  const auto schedule = make("zb-h2", 2, 4);
  CHECK(summary(play(schedule, unit_costs(schedule))) ==
        "makespan 13, bubble 7.7 % of one step; period 12, bubble 0 % in steady state; peaks 3 3");
}
