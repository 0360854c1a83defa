// Properties of every plan.

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "catch.h"
#include "core/json.h"
#include "random_problems.h"
#include "schedules/check/check.h"
#include "schedules/plan/holdings.h"
#include "schedules/plan/plan.h"
#include "schedules/plan/plan_format.h"
#include "small_plans.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

namespace {

/// Returns a request with random units, devices and options.
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
    unit.boundary = unit.boundary_back = dice.roll(1, 6);
    if (dice.one_in(6)) unit.update_room = dice.roll(0, 60);
    if (dice.one_in(6)) unit.tied = {TiedParameters{"table", 10, 10}};
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

/// Replays every lane with the checker's own memory accounting.
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

/// Checks that the holdings of units add up to those of their seats, for each purpose.
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

TEST_CASE("every plan fits its devices and planning is deterministic", "[schedules]") {
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
