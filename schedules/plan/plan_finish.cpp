#include <algorithm>
#include <map>

#include "schedules/plan/plan_draft.h"
#include "schedules/plan/plan_layout.h"
#include "schedules/plan/plan_memory.h"
#include "schedules/simulate/simulate.h"

namespace troupe::schedules {

namespace {

// The most devices simulated with individual links; longer pipelines use only their slowest link.
constexpr int most_linked = 256;

/// Returns the devices that hold a stage: in every replica, and in each direction.
std::vector<DevicePlace> holders(const PlanDraft& draft, int stage) {
  std::vector<DevicePlace> places;
  for (const PlannedSeat& seat : draft.seats)
    if (seat.stage == stage) places.insert(places.end(), seat.places.begin(), seat.places.end());
  return places;
}

Bytes gradient_of(const PlanRequest& request, const PlanDraft& draft, int stage) {
  Bytes bytes = 0;
  for (int u = draft.cuts[stage]; u < draft.cuts[stage + 1]; ++u)
    bytes += request.units[u].gradient;
  return bytes;
}

int stage_of(const PlanDraft& draft, int unit) {
  return static_cast<int>(std::ranges::upper_bound(draft.cuts, unit) - draft.cuts.begin()) - 1;
}

/// Returns the ties whose ends lie on different devices.
std::vector<TiedUnits> parted_ties(const PlanRequest& request, const PlanDraft& draft) {
  auto ties = tied_units(request.units);
  std::erase_if(ties, [&](const TiedUnits& tie) {
    return holders(draft, stage_of(draft, tie.owner)) == holders(draft, stage_of(draft, tie.other));
  });
  return ties;
}

/// Returns the time of both ways: n - 1 parts of 1/n each, or n - 1 whole tensors by a server.
Seconds exchange_time(const Cluster& cluster, Exchange exchange,
                      const std::vector<DevicePlace>& members, Bytes bytes) {
  if (members.size() < 2) return Seconds(0);
  auto next = members;
  std::rotate(next.begin(), next.begin() + 1, next.end());
  const Link link = slowest_link(cluster, members, next);
  const auto count = static_cast<double>(members.size());
  const double parts = exchange == Exchange::server ? 1 : count;
  return 2 * (count - 1) * (Seconds(link.latency) + occupied(link, bytes) / parts);
}

/// Returns the time in which all optimizers tell each other their part of the gradient's norm.
Seconds norm_time(const PlanRequest& request, const PlanDraft& draft) {
  if (request.objective != Objective::makespan) return Seconds(0);
  const auto& first = draft.places.front();
  double latency = 0;
  for (const auto& row : draft.places) {
    latency = std::max(latency, slowest_link(request.cluster, first, row).latency);
    for (std::size_t p = 0; p + 1 < row.size(); ++p)
      latency = std::max(latency, link_between(request.cluster, row[p], row[p + 1]).latency);
  }
  return Seconds(latency);
}

void add_reductions(const PlanRequest& request, const PlanDraft& draft,
                    std::vector<StageCosts>& stages) {
  for (int s = 0; s < static_cast<int>(stages.size()); ++s)
    stages[s].reduce = exchange_time(request.cluster, request.exchange, holders(draft, s),
                                     gradient_of(request, draft, s))
                           .count();
  const Seconds fixed = norm_time(request, draft) + request.hand_over;
  for (auto& stage : stages) stage.reduce += fixed.count();
  for (const TiedUnits& tie : parted_ties(request, draft)) {
    // One gradient goes to the owner, and the sum returns.
    const int owner = stage_of(draft, tie.owner);
    const int other = stage_of(draft, tie.other);
    const Link link =
        slowest_link(request.cluster, {holders(draft, owner)[0]}, {holders(draft, other)[0]});
    const double there_and_back = 2 * hop(link, tie.copy.gradient).count();
    stages[owner].reduce += there_and_back;
    stages[other].reduce += there_and_back;
  }
}

Bytes boundary_traffic(const PlanDraft& draft, const std::vector<StageCosts>& stages) {
  Bytes bytes = 0;
  for (const SchedulePtr& played : draft.schedules) {
    const Schedule& schedule = *played;
    const auto routes = schedule.route_of.size();
    for (std::size_t k = 0; k < routes; ++k) {
      const Route& route = schedule.routes[schedule.route_of[k]];
      const auto micro_batches =
          (static_cast<std::size_t>(schedule.micro_batches) + routes - 1 - k) / routes;
      for (std::size_t s = 0; s + 1 < route.size(); ++s)
        if (route[s] != route[s + 1])
          bytes += static_cast<Bytes>(micro_batches) *
                   static_cast<Bytes>(stages[s].boundary + stages[s].boundary_back);
    }
  }
  return bytes;
}

/// The times that the messages of one replica take. All messages to a device, and all from a
/// device, share its connection. The simulator lets each message travel as if it were alone.
struct LinkTimes {
  double busiest = 0;  // The time in a step for which the busiest connection is occupied.
  double step = 0;     // The time of the step that these allow.
};

LinkTimes link_times(const Schedule& schedule, const Costs& costs) {
  const std::size_t devices = schedule.lanes.size();
  std::vector<double> arrives(devices), leaves(devices);
  double trip = 0;  // The time of one micro-batch alone: all passes and hops.
  const auto routes = schedule.route_of.size();
  for (std::size_t k = 0; k < routes; ++k) {
    const Route& route = schedule.routes[schedule.route_of[k]];
    const auto micro_batches = static_cast<double>(
        (static_cast<std::size_t>(schedule.micro_batches) + routes - 1 - k) / routes);
    double hops = 0;
    for (std::size_t s = 0; s + 1 < route.size(); ++s) {
      const std::size_t from = route[s], to = route[s + 1];
      if (from == to) continue;
      const Link& link = costs.between(from, to);
      const auto& stage = costs.stages[s];
      const double there = micro_batches * stage.boundary / link.bandwidth;
      const double back = micro_batches * stage.boundary_back / link.bandwidth;
      leaves[from] += there, arrives[to] += there;  // Activations,
      leaves[to] += back, arrives[from] += back;    // and gradients.
      hops += link.time(stage.boundary) + link.time(stage.boundary_back);
    }
    trip = std::max(trip, hops);
  }
  for (std::size_t device = 0; device < devices; ++device)
    for (const Action action : schedule.lanes[device])
      if (has_micro_batch(action.kind) && action.micro_batch == 0 &&
          action.kind != Kind::backward_weight)
        trip += costs.launch +
                costs.slowness_of(device) * time_of(action.kind, costs.stages[action.stage]);
  double update = 0;
  for (const StageCosts& stage : costs.stages)
    update = std::max(update, stage.reduce + stage.update);
  LinkTimes times;
  for (std::size_t device = 0; device < devices; ++device)
    times.busiest = std::max({times.busiest, arrives[device], leaves[device]});
  // The trip has a message of each link already.
  const double first = times.busiest / std::max(1, schedule.micro_batches);
  times.step = trip + update + times.busiest - first;
  return times;
}

Bytes reduction_traffic(const PlanRequest& request, const PlanDraft& draft) {
  Bytes bytes = 0;
  for (int s = 0; s + 1 < static_cast<int>(draft.cuts.size()); ++s) {
    const auto members = static_cast<Bytes>(holders(draft, s).size());
    bytes += 2 * (members - 1) * gradient_of(request, draft, s);
  }
  for (const TiedUnits& tie : parted_ties(request, draft))
    bytes += 2 * static_cast<Bytes>(draft.places.size()) * tie.copy.gradient;
  return bytes;
}

}  // namespace

Costs costs_of(const PlanRequest& request, const PlanDraft& draft, int replica) {
  Costs costs;
  costs.stages = stage_costs(request, draft.cuts);
  add_reductions(request, draft, costs.stages);
  costs.launch = request.pass.count();
  const auto& row = draft.places[replica];
  for (DevicePlace place : row) costs.slowness.push_back(1 / at(request.cluster, place).speed);
  if (draft.shape.positions > most_linked) {
    std::vector<DevicePlace> next(row.begin() + 1, row.end());
    costs.link = slowest_link(request.cluster, {row.begin(), row.end() - 1}, next);
    return costs;
  }
  for (DevicePlace from : row) {
    auto& links = costs.links.emplace_back();
    for (DevicePlace to : row) links.push_back(link_between(request.cluster, from, to));
  }
  return costs;
}

Seconds estimate_of(const PlanRequest& request, const PlanDraft& draft) {
  Seconds most{};
  const PlanShape& shape = draft.shape;
  for (const SchedulePtr& schedule : draft.schedules) {
    std::size_t actions = 0;
    for (const Lane& lane : schedule->lanes) actions = std::max(actions, lane.size());
    const auto stages =
        schedule->micro_batches + static_cast<double>(shape.positions - 1) / shape.chunks;
    most = std::max(most, draft.bottleneck * stages + static_cast<double>(actions) * request.pass);
  }
  Seconds sums{};
  for (const PlannedSeat& seat : draft.seats)
    sums = std::max(sums, exchange_time(request.cluster, request.exchange, seat.places,
                                        gradient_of(request, draft, seat.stage)));
  Seconds hops{};
  const auto& row = draft.places.front();
  for (std::size_t p = 0; p + 1 < row.size(); ++p)
    hops += Seconds(2 * link_between(request.cluster, row[p], row[p + 1]).latency);
  return most + sums + hops + norm_time(request, draft) + request.hand_over;
}

Result<Plan> finish(const PlanRequest& request, const PlanDraft& draft) {
  Plan plan;
  plan.schedule = draft.schedules.front()->name;
  plan.chunks = draft.shape.chunks;
  plan.seats = draft.seats;
  const auto stages = stage_costs(request, draft.cuts);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    PlannedStage stage;
    stage.first = draft.cuts[s];
    stage.last = draft.cuts[s + 1];
    stage.forward = Seconds(stages[s].forward);
    stage.boundary = s == 0 ? 0 : request.units[stage.first].boundary;
    plan.stages.push_back(stage);
  }

  double busy = 0;
  // Replicas with equal lanes and device speeds are simulated once.
  std::map<std::pair<int, std::vector<double>>, Simulation> known;
  for (std::size_t r = 0; r < draft.places.size(); ++r) {
    const Schedule& schedule = *draft.schedules[r];
    const Costs costs = costs_of(request, draft, static_cast<int>(r));
    const auto key = std::pair(schedule.micro_batches, costs.slowness);
    if (!known.contains(key)) {
      auto simulated = simulate(schedule, costs);
      if (!simulated) return simulated.error();
      known.emplace(key, std::move(*simulated));
    }
    const Simulation& simulation = known.at(key);
    const LinkTimes links = link_times(schedule, costs);
    const Seconds step(std::max(simulation.makespan, links.step));
    plan.replicas.push_back({draft.places[r], draft.schedules[r], step});
    plan.micro_batches += schedule.micro_batches;
    plan.step = std::max(plan.step, step);
    plan.period = std::max(plan.period, Seconds(std::max(simulation.period, links.busiest)));
    busy += simulation.busy();
  }
  for (const Lane& lane : draft.schedules.front()->lanes)
    for (const Action action : lane)
      if (action.micro_batch == 0 && has_micro_batch(action.kind) && action.kind != Kind::forward)
        plan.stages[action.stage].backward += Seconds(time_of(action.kind, stages[action.stage]));

  const double device_time = plan.devices() * plan.step.count();
  const double steady_time = plan.devices() * plan.period.count();
  plan.bubble = device_time > 0 ? 1 - busy / device_time : 0;
  plan.steady_bubble = steady_time > 0 ? 1 - busy / steady_time : 0;
  const Seconds between = request.objective == Objective::makespan ? plan.step : plan.period;
  plan.rate = between.count() > 0 ? plan.micro_batches / between.count() : 0;
  plan.boundary_traffic = boundary_traffic(draft, stages);
  plan.reduction_traffic = reduction_traffic(request, draft);
  return plan;
}

}  // namespace troupe::schedules
