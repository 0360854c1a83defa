#include "small_plans.h"

#include <string>

#include "catch.h"

namespace troupe::schedules::testing {

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
  unit.boundary = unit.boundary_back = 3;
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

}  // namespace troupe::schedules::testing
