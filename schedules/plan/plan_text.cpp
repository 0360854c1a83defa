#include <algorithm>
#include <cstddef>

#include "core/units.h"
#include "schedules/plan/plan.h"
#include "schedules/plan/plan_format.h"
#include "schedules/plan/plan_layout.h"

namespace troupe::schedules {

namespace {

std::string units_of(const PlanRequest& request, const PlannedStage& stage) {
  const std::string& first = request.units[stage.first].name;
  if (stage.last - stage.first == 1) return first;
  return first + " .. " + request.units[stage.last - 1].name;
}

std::string places_of(const PlanRequest& request, const std::vector<DevicePlace>& places) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t k = 0; k < std::min(places.size(), shown); ++k)
    text += (k == 0 ? "" : " ") + to_string(request.cluster, places[k]);
  if (places.size() > shown) text += " +" + std::to_string(places.size() - shown);
  return text;
}

std::string event_of(const Outlook& outlook) {
  const std::string& first = outlook.nodes.front();
  const std::string& last = outlook.nodes.back();
  const bool is_pair = outlook.nodes.size() == 2;
  switch (outlook.event) {
    case Outlook::Event::goes:
      return is_pair ? first + " and " + last + " fail" : first + " fails";
    case Outlook::Event::comes:
      if (!is_pair) return "another node like " + first + " joins";
      return first == last ? "two more nodes like " + first + " join"
                           : "another node like " + first + " and one like " + last + " join";
  }
  return {};
}

}  // namespace

std::string headline(const Plan& plan) {
  return plan.schedule + ", " + counted(plan.stages.size(), "stage") + ", " +
         counted(plan.replicas.size(), "replica") + ", " + counted(plan.devices(), "device") +
         ", " + counted(plan.micro_batches, "micro-batch", "es") + " a step";
}

std::string to_table(const PlanRequest& request, const Plan& plan, std::size_t columns) {
  TextTable table({"stage", "units", "layers", "devices", "weights", "gradients", "optimizer",
                   "activations", "buffers", "total", "of", "forward", "backward"});
  for (const PlannedSeat& seat : plan.seats) {
    const PlannedStage& stage = plan.stages[seat.stage];
    const StageMemory& memory = seat.memory;
    Bytes available = usable_memory(request, seat.places.front());
    for (DevicePlace place : seat.places)
      available = std::min(available, usable_memory(request, place));
    table.add({std::to_string(seat.stage),
               std::to_string(stage.first) + ".." + std::to_string(stage.last - 1),
               units_of(request, stage), places_of(request, seat.places), show(memory.weights),
               show(memory.gradients), show(memory.optimizer), show(memory.activations),
               show(memory.buffers), show(memory.total()),
               available < unknown_memory ? show(available) : "unknown", show(stage.forward),
               show(stage.backward)});
  }
  return headline(plan) + "\n\n" + table.text(columns) + "\nstep " + show(plan.step) + ", bubble " +
         percent(plan.bubble) + "; steps back to back " + show(plan.period) + ", bubble " +
         percent(plan.steady_bubble) + "\n" + significant(plan.rate) +
         " micro-batches a second\ntraffic in a step: " + show(plan.boundary_traffic) +
         " between stages, " + show(plan.reduction_traffic) + " for sums of gradients\n";
}

std::string to_table(const Plan& plan, const std::vector<Outlook>& outlooks, std::size_t columns) {
  TextTable table({"if", "the run", "stages", "replicas", "step", "rate", "because"});
  for (const Outlook& outlook : outlooks) {
    if (!outlook.plan) {
      table.add({event_of(outlook), "waits", "-", "-", "-", "-", outlook.reason});
      continue;
    }
    const Plan& then = *outlook.plan;
    table.add({event_of(outlook),
               outlook.reason.empty() ? "continues" : "continues with new stage boundaries",
               std::to_string(then.stages.size()), std::to_string(then.replicas.size()),
               show(then.step), plan.rate > 0 ? percent(then.rate / plan.rate) : "-",
               outlook.reason});
  }
  return table.text(columns);
}

}  // namespace troupe::schedules
