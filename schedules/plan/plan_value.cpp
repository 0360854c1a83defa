#include "schedules/plan/plan.h"

namespace troupe::schedules {

namespace {

Value memory_value(const StageMemory& memory) {
  Value value;
  value.set("weights", memory.weights);
  value.set("gradients", memory.gradients);
  value.set("optimizer", memory.optimizer);
  value.set("activations", memory.activations);
  value.set("buffers", memory.buffers);
  value.set("total", memory.total());
  return value;
}

Value stage_value(const PlanRequest& request, const PlannedStage& stage) {
  Value::List names;
  for (int u = stage.first; u < stage.last; ++u) names.emplace_back(request.units[u].name);
  Value value;
  value.set("first", stage.first);
  value.set("last", stage.last);
  value.set("units", std::move(names));
  value.set("forward_seconds", stage.forward.count());
  value.set("backward_seconds", stage.backward.count());
  value.set("boundary_bytes", stage.boundary);
  return value;
}

Value seat_value(const PlanRequest& request, const PlannedSeat& seat) {
  Value::List devices;
  for (DevicePlace place : seat.places) devices.emplace_back(to_string(request.cluster, place));
  Value value;
  value.set("stage", seat.stage);
  value.set("position", seat.position);
  value.set("devices", std::move(devices));
  value.set("bytes", memory_value(seat.memory));
  value.set("weight_versions", seat.weight_versions);
  value.set("in_flight", seat.in_flight);
  return value;
}

/// Sets the figures by which plans are compared.
void set_figures(Value& value, const Plan& plan) {
  value.set("schedule", plan.schedule);
  value.set("devices", plan.devices());
  value.set("chunks", plan.chunks);
  value.set("replicas", static_cast<std::int64_t>(plan.replicas.size()));
  value.set("micro_batches", plan.micro_batches);
  value.set("step_seconds", plan.step.count());
  value.set("period_seconds", plan.period.count());
  value.set("bubble", plan.bubble);
  value.set("steady_bubble", plan.steady_bubble);
  value.set("micro_batches_per_second", plan.rate);
  value.set("boundary_traffic_bytes", plan.boundary_traffic);
  value.set("reduction_traffic_bytes", plan.reduction_traffic);
}

}  // namespace

Value to_value(const PlanRequest& request, const Plan& plan) {
  Value value;
  set_figures(value, plan);
  Value::List stages;
  for (const PlannedStage& stage : plan.stages) stages.push_back(stage_value(request, stage));
  value.set("stages", std::move(stages));
  Value::List seats;
  for (const PlannedSeat& seat : plan.seats) seats.push_back(seat_value(request, seat));
  value.set("seats", std::move(seats));
  Value::List shares;
  for (const PlannedReplica& replica : plan.replicas)
    shares.emplace_back(replica.schedule->micro_batches);
  value.set("micro_batches_by_replica", std::move(shares));
  return value;
}

Value to_value(const Plan& plan, const std::vector<Outlook>& outlooks) {
  Value::List all;
  for (const Outlook& outlook : outlooks) {
    Value::List nodes;
    for (const std::string& name : outlook.nodes) nodes.emplace_back(name);
    Value entry;
    entry.set("event", outlook.event == Outlook::Event::goes ? "goes" : "comes");
    entry.set("nodes", std::move(nodes));
    if (!outlook.reason.empty()) entry.set("reason", outlook.reason);
    if (outlook.plan) {
      Value then;
      set_figures(then, *outlook.plan);
      then.set("stages", static_cast<std::int64_t>(outlook.plan->stages.size()));
      if (plan.rate > 0) then.set("rate_ratio", outlook.plan->rate / plan.rate);
      entry.set("plan", std::move(then));
    }
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace troupe::schedules
