#include <algorithm>

#include "core/units.h"
#include "schedules/plan/plan.h"
#include "schedules/plan/plan_format.h"

namespace troupe::schedules {

namespace {

std::string plus(const std::string& what, Bytes bytes) {
  return bytes == 0 ? "" : " + " + what + " " + show(bytes);
}

/// Sums a cost over the units of a stage.
template <class Get>
Bytes sum(const PlanRequest& request, const PlannedStage& stage, Get get) {
  Bytes bytes = 0;
  for (int u = stage.first; u < stage.last; ++u) bytes += get(request.units[u]);
  return bytes;
}

std::string explain_seat(const PlanRequest& request, const Plan& plan, const PlannedSeat& seat) {
  const PlannedStage& stage = plan.stages[seat.stage];
  const StageMemory& memory = seat.memory;
  const Bytes weight = sum(request, stage, [](const UnitCost& unit) { return unit.weight; });
  const Bytes gradient = sum(request, stage, [](const UnitCost& unit) { return unit.gradient; });
  const Bytes optimizer = sum(request, stage, [](const UnitCost& unit) { return unit.optimizer; });
  const Bytes stash = sum(request, stage, [](const UnitCost& unit) { return unit.stash; }) +
                      request.units[stage.first].stash_shared;
  const int versions = seat.weight_versions;
  const int making = request.holding.versions_in_the_making;
  const int sums = request.holding.gradient_sums;
  const int slots = request.holding.landing_slots + request.holding.outgoing_slots;

  std::string text = "stage " + std::to_string(seat.stage) + " on " +
                     to_string(request.cluster, seat.places.front()) + "\n";
  const auto line = [&](const std::string& what, Bytes bytes, const std::string& formula) {
    text += "  " + what + " = " + formula + " = " + show(bytes) + "\n";
  };
  const Bytes grain = request.holding.section_grain;
  line("weights", memory.weights,
       std::to_string(versions) + " versions (" + std::to_string(versions - making) + " in use, " +
           std::to_string(making) + " in the making) x " + show(weight) +
           plus("second copies of tied parameters", memory.weights - versions * weight));
  line("gradients", memory.gradients, counted(sums, "sum") + " x " + show(gradient));
  line("optimizer", memory.optimizer,
       "state of its parameters " + show(optimizer) +
           plus("what replicas cannot share out evenly", grain));
  line("activations", memory.activations,
       "what its lane holds when the device holds most: at most " +
           counted(seat.in_flight, "micro-batch", "es") + " in flight, of " + show(stash) +
           " each" +
           (request.recompute.in(seat.stage)
                ? " while it is computed again, of " +
                      show(request.units[stage.first].stash_input) + " before"
                : ""));
  line("buffers", memory.buffers,
       std::to_string(slots) + " slots (" + std::to_string(request.holding.landing_slots) +
           " landing, " + std::to_string(request.holding.outgoing_slots) + " outgoing) x " +
           show((memory.buffers - seat.workspace) / std::max(1, slots)) +
           " for its boundaries with other devices" +
           plus("the largest workspace of a pass or an update", seat.workspace));
  line("total", memory.total(), "weights + gradients + optimizer + activations + buffers");
  text += "  forward = sum over its units = " + show(stage.forward) + "\n";
  text += "  backward = sum over its units, both halves" +
          std::string(request.recompute.in(seat.stage) ? ", and forward once more" : "") + " = " +
          show(stage.backward) + "\n";
  return text;
}

}  // namespace

std::string explain(const PlanRequest& request, const Plan& plan) {
  std::string text;
  for (const PlannedSeat& seat : plan.seats) text += explain_seat(request, plan, seat);
  const std::string devices = std::to_string(plan.devices());
  text +=
      "step = from the first start to the last end when " + plan.schedule +
      " is played with these times, links and reductions, and no less than connections take for "
      "all messages";
  if (request.pass.count() > 0)
    text += ", with " + show(request.pass) + " for each pass and update besides its work";
  if (request.hand_over.count() > 0)
    text += " and " + show(request.hand_over) + " for the end of the step";
  text += " = " + show(plan.step) + "\n";
  text +=
      "period = the distance of the last two of four steps with no barrier = " + show(plan.period) +
      "\n";
  text += "bubble = 1 - busy / (" + devices + " devices x step) = " + percent(plan.bubble) + "\n";
  text += "steady bubble = 1 - busy / (" + devices +
          " devices x period) = " + percent(plan.steady_bubble) + "\n";
  text += "rate = " + std::to_string(plan.micro_batches) + " micro-batches / " +
          (request.objective == Objective::makespan ? "step" : "period") + " = " +
          significant(plan.rate) + " a second\n";
  text +=
      "traffic between stages = bytes of activations and of gradients (kept values included; no "
      "gradient if nothing before the boundary is trained) for every micro-batch and boundary "
      "between devices = " +
      show(plan.boundary_traffic) + "\n";
  text +=
      "traffic for sums = 2 x (n - 1) x gradient bytes for every stage that n devices hold, and "
      "2 x gradient bytes for every tie between devices = " +
      show(plan.reduction_traffic) + "\n";
  return text;
}

}  // namespace troupe::schedules
