#include "schedules/plan/holdings.h"

#include "catch.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Three blocks on two devices; the second is the largest, and the first stage has two blocks.
PlanRequest three_blocks() {
  PlanRequest request;
  for (int u = 0; u < 3; ++u) {
    UnitCost unit;
    unit.name = "block " + std::to_string(u);
    unit.forward = unit.backward_input = unit.backward_weight = Seconds(1);
    unit.backward = Seconds(2);
    unit.weight = unit.gradient = u == 1 ? 100 : 10;
    unit.optimizer = 2 * unit.weight;
    unit.stash = u == 1 ? 50 : 5;
    unit.stash_input = 1;
    unit.stash_weight = 2;
    unit.boundary = unit.boundary_back = 3;
    request.units.push_back(unit);
  }
  ClusterNode node;
  node.name = "node";
  node.devices = {{.speed = 1, .memory = 10'000}, {.speed = 1, .memory = 10'000}};
  request.cluster.nodes = {node};
  request.micro_batches = request.groups = 4;
  request.boundaries = {0, 2, 3};
  request.stages = 2;
  request.replicas = 1;
  return request;
}

RunMemory memory_of(const PlanRequest& request) {
  const auto plan = make_plan(request);
  INFO((plan ? "" : plan.error().text));
  REQUIRE(plan.ok());
  return run_memory("r", request, *plan);
}

Bytes held(const RunMemory& memory, int device, const std::string& unit, Held held) {
  Bytes bytes = 0;
  for (const Holding& holding : memory.holdings)
    if (holding.device == device && holding.unit == unit && holding.held == held)
      bytes += holding.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("a plan reports what every device holds of each unit", "[schedules]") {
  const RunMemory memory = memory_of(three_blocks());
  CHECK(memory.run == "r");
  CHECK(memory.plan == "1f1b, 2 stages, 1 replica, 2 devices, 4 micro-batches a step");
  CHECK(memory.devices == 2);
  // Two versions, two micro-batches in flight, and three slots for one boundary.
  CHECK(held(memory, 0, "block 0", Held::weights) == 2 * 10);
  CHECK(held(memory, 0, "block 1", Held::weights) == 2 * 100);
  CHECK(held(memory, 0, "block 1", Held::gradients) == 100);
  CHECK(held(memory, 0, "block 1", Held::optimizer) == 200);
  CHECK(held(memory, 0, "block 0", Held::activations) == 2 * 5);
  CHECK(held(memory, 0, "block 1", Held::activations) == 2 * 50);
  CHECK(held(memory, 0, "block 0", Held::buffers) == 0);
  CHECK(held(memory, 0, "block 1", Held::buffers) == 3 * 3);
  CHECK(held(memory, 0, "block 2", Held::weights) == 0);
  CHECK(held(memory, 1, "block 2", Held::weights) == 2 * 10);
  CHECK(held(memory, 1, "block 2", Held::activations) == 5);
  CHECK(held(memory, 1, "block 2", Held::buffers) == 3 * 3);
}

TEST_CASE("a stage that recomputes holds the input of its first unit", "[schedules]") {
  PlanRequest request = three_blocks();
  request.recompute.everywhere = true;
  const RunMemory memory = memory_of(request);
  // One micro-batch is held whole; of the other, only the input.
  CHECK(held(memory, 0, "block 0", Held::activations) == 5 + 1);
  CHECK(held(memory, 0, "block 1", Held::activations) == 50);
}

TEST_CASE("a workspace is charged to the unit that needs it", "[schedules]") {
  PlanRequest request = three_blocks();
  request.units[0].workspace = 5;
  request.units[1].workspace = 30;
  const RunMemory memory = memory_of(request);
  CHECK(held(memory, 0, "block 0", Held::buffers) == 0);
  CHECK(held(memory, 0, "block 1", Held::buffers) == 9 + 30);
}

TEST_CASE("an optimizer's extra workspace belongs to no unit", "[schedules]") {
  PlanRequest request = three_blocks();
  request.units[2].update_room = 1000;
  // The update reuses the activations of a micro-batch and the version being written.
  CHECK(held(memory_of(request), 1, "", Held::buffers) == 1000 - 5 - 10);
}

TEST_CASE("every replica holds the same bytes on its own devices", "[schedules]") {
  PlanRequest request = three_blocks();
  request.cluster.nodes.push_back(request.cluster.nodes.front());
  request.cluster.nodes.back().name = "other";
  request.replicas = 2;
  const RunMemory memory = memory_of(request);
  CHECK(memory.devices == 4);
  CHECK(held(memory, 3, "block 2", Held::weights) == 2 * 10);
  CHECK(held(memory, 3, "block 2", Held::weights) == held(memory, 1, "block 2", Held::weights));
  CHECK(held(memory, 2, "block 2", Held::weights) == 0);
}
