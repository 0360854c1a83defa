#include "schedules/plan_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "schedules/simulator.h"

namespace troupe::schedules {

std::vector<StageCosts> stage_costs(const PlanRequest& request, const std::vector<int>& cuts) {
  std::vector<StageCosts> all;
  for (std::size_t stage = 0; stage + 1 < cuts.size(); ++stage) {
    Seconds forward{}, backward{}, input{}, weight{}, update{};
    Bytes stash = 0;
    Bytes stash_weight = 0;
    for (int u = cuts[stage]; u < cuts[stage + 1]; ++u) {
      const UnitCost& unit = request.units[u];
      forward += unit.forward;
      backward += unit.backward;
      input += unit.backward_input;
      weight += unit.backward_weight;
      update += unit.update;
      stash += unit.stash;
      stash_weight += unit.stash_weight;
    }
    const UnitCost& first = request.units[cuts[stage]];
    StageCosts costs;
    costs.forward = forward.count();
    costs.backward = backward.count();
    costs.backward_input = input.count();
    costs.backward_weight = weight.count();
    costs.recompute = forward.count();
    costs.update = update.count();
    costs.activations = static_cast<double>(stash);
    costs.weight_activations = static_cast<double>(stash_weight);
    costs.input_activations = static_cast<double>(first.stash_input);
    costs.boundary =
        stage + 2 < cuts.size() ? static_cast<double>(request.units[cuts[stage + 1]].boundary) : 0;
    all.push_back(costs);
  }
  return all;
}

std::vector<double> held_at_peak(const Lane& lane, const std::vector<StageCosts>& stages) {
  std::vector<double> held(stages.size(), 0);
  std::vector<double> at_peak = held;
  double now = 0;
  double peak = 0;
  std::size_t group = 0;  // Where the group began: it takes all before it gives any.
  for (std::size_t position = 0; position < lane.size(); ++position) {
    const Stash stash = stash_of(lane[position], stages[lane[position].stage]);
    held[lane[position].stage] += stash.taken;
    now += stash.taken;
    if (grouped_with_next(lane, position)) continue;
    if (now > peak) {
      peak = now;
      at_peak = held;
    }
    for (; group <= position; ++group) {
      const double given = stash_of(lane[group], stages[lane[group].stage]).given;
      held[lane[group].stage] -= given;
      now -= given;
    }
  }
  return at_peak;
}

std::vector<int> in_flight(const Lane& lane, int stages) {
  std::vector<int> now(static_cast<std::size_t>(stages), 0);
  std::vector<int> most = now;
  for (std::size_t position = 0, group = 0; position < lane.size(); ++position) {
    const int stage = lane[position].stage;
    if (lane[position].kind == Kind::forward) most[stage] = std::max(most[stage], ++now[stage]);
    if (grouped_with_next(lane, position)) continue;
    for (; group <= position; ++group)
      if (lane[group].kind == Kind::backward || lane[group].kind == Kind::backward_weight)
        --now[lane[group].stage];
  }
  return most;
}

bool is_asynchronous(const Schedule& schedule) {
  std::set<int> updated;
  return std::ranges::any_of(schedule.lanes[0], [&](Action action) {
    return action.kind == Kind::update && !updated.insert(action.stage).second;
  });
}

Result<std::vector<std::vector<int>>> versions_held(const PlanRequest& request,
                                                    const Schedule& schedule) {
  const int beside = request.holding.versions_in_the_making;
  const auto stages = static_cast<std::size_t>(schedule.stages);
  std::vector<std::vector<int>> held(schedule.lanes.size(), std::vector<int>(stages, 1 + beside));
  if (!is_asynchronous(schedule)) return held;
  const auto traces = replay_versions(schedule, request.versions);
  if (!traces) return traces.error();
  for (const VersionTrace& trace : *traces) held[trace.device][trace.stage] = trace.copies + beside;
  return held;
}

std::vector<TiedUnits> tied_units(const std::vector<UnitCost>& units) {
  std::map<std::string, int> owners;
  std::vector<TiedUnits> tied;
  for (int u = 0; u < static_cast<int>(units.size()); ++u) {
    if (!units[u].tied) continue;
    const auto [owner, is_first] = owners.emplace(units[u].tied->name, u);
    if (!is_first) tied.push_back({owner->second, u});
  }
  return tied;
}

namespace {

/// Whether the weights' half of a backward pass may come later than the input's.
bool has_halves(const Lane& lane) {
  return std::ranges::any_of(lane,
                             [](Action action) { return action.kind == Kind::backward_input; });
}

class SeatMemory {
 public:
  SeatMemory(const PlanRequest& request, const Schedule& schedule, const std::vector<int>& cuts,
             std::vector<std::vector<int>> versions)
      : request_(request),
        schedule_(schedule),
        cuts_(cuts),
        versions_(std::move(versions)),
        tied_(tied_units(request.units)) {}

  std::vector<PlannedSeat> all() const {
    const auto costs = stage_costs(request_, cuts_);
    std::vector<PlannedSeat> seats;
    for (int device = 0; device < schedule_.devices(); ++device) {
      const Lane& lane = schedule_.lanes[device];
      const auto activations = held_at_peak(lane, costs);
      const auto counts = in_flight(lane, schedule_.stages);
      const std::size_t first = seats.size();
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        if (!holds(device, stage)) continue;
        PlannedSeat seat;
        seat.stage = stage;
        seat.position = device;
        seat.weight_versions = versions_[device][stage];
        seat.in_flight = counts[stage];
        add_units(seat);
        seat.memory.activations = static_cast<Bytes>(activations[stage]);
        seat.memory.buffers = boundary_buffers(device, stage);
        seats.push_back(std::move(seat));
      }
      add_workspace(seats, first);
    }
    return seats;
  }

 private:
  bool holds(int device, int stage) const {
    return std::ranges::any_of(schedule_.routes,
                               [&](const Route& route) { return route[stage] == device; });
  }

  int stage_of(int unit) const {
    return static_cast<int>(std::ranges::upper_bound(cuts_, unit) - cuts_.begin()) - 1;
  }

  void add_units(PlannedSeat& seat) const {
    StageMemory& memory = seat.memory;
    const int versions = seat.weight_versions;
    const int sums = request_.holding.gradient_sums;
    for (int u = cuts_[seat.stage]; u < cuts_[seat.stage + 1]; ++u) {
      memory.weights += versions * request_.units[u].weight;
      memory.gradients += sums * request_.units[u].gradient;
      memory.optimizer += request_.units[u].optimizer;
    }
    for (const TiedUnits& tie : tied_) {
      if (stage_of(tie.other) != seat.stage || has_already(seat, tie)) continue;
      const TiedParameters& copy = *request_.units[tie.other].tied;
      memory.weights += versions * copy.weight;
      memory.gradients += sums * copy.gradient;
      memory.optimizer += copy.optimizer;
    }
    memory.optimizer += request_.holding.section_grain;
  }

  /// Whether the device holds the parameters of the tie before it comes to this unit.
  bool has_already(const PlannedSeat& seat, const TiedUnits& tie) const {
    if (holds(seat.position, stage_of(tie.owner))) return true;
    return std::ranges::any_of(tied_, [&](const TiedUnits& other) {
      return other.owner == tie.owner && other.other < tie.other &&
             holds(seat.position, stage_of(other.other));
    });
  }

  /// For what comes over the boundaries with other devices, and what goes: of each an activation
  /// one way, a gradient the other.
  Bytes boundary_buffers(int device, int stage) const {
    const int slots = request_.holding.landing_slots + request_.holding.outgoing_slots;
    Bytes bytes = 0;
    for (const Route& route : schedule_.routes) {
      if (route[stage] != device) continue;
      if (stage > 0 && route[stage - 1] != device)
        bytes += slots * request_.units[cuts_[stage]].boundary;
      if (stage + 1 < schedule_.stages && route[stage + 1] != device)
        bytes += slots * request_.units[cuts_[stage + 1]].boundary;
    }
    return bytes;
  }

  /// What the updates of a device need beyond what its passes held, where none runs meanwhile.
  Bytes update_excess(const std::vector<PlannedSeat>& seats, std::size_t first) const {
    if (is_asynchronous(schedule_)) return 0;
    Bytes excess = 0;
    for (std::size_t k = first; k < seats.size(); ++k) {
      const PlannedSeat& seat = seats[k];
      excess -= seat.memory.activations;
      for (int u = cuts_[seat.stage]; u < cuts_[seat.stage + 1]; ++u) {
        const UnitCost& unit = request_.units[u];
        excess += unit.update_room - (request_.holding.gradient_sums - 1) * unit.gradient -
                  request_.holding.versions_in_the_making * unit.weight;
      }
    }
    return excess;
  }

  /// The device runs one pass or update at a time: the largest workspace serves all its stages.
  void add_workspace(std::vector<PlannedSeat>& seats, std::size_t first) const {
    if (first == seats.size()) return;
    Bytes largest = update_excess(seats, first);
    PlannedSeat* owner = &seats[first];
    const bool halves = has_halves(schedule_.lanes[seats[first].position]);
    for (std::size_t k = first; k < seats.size(); ++k) {
      Bytes gone = 0;  // When a unit runs backward, later ones have done so.
      for (int u = cuts_[seats[k].stage + 1] - 1; u >= cuts_[seats[k].stage]; --u) {
        const UnitCost& unit = request_.units[u];
        if (request_.holding.makes_sum_in_backward) gone -= unit.gradient;
        if (unit.workspace - gone > largest) {
          largest = unit.workspace - gone;
          owner = &seats[k];
        }
        gone += unit.stash - (halves ? unit.stash_weight : 0);
      }
    }
    if (largest <= 0) return;
    owner->workspace = largest;
    owner->memory.buffers += largest;
  }

  const PlanRequest& request_;
  const Schedule& schedule_;
  const std::vector<int>& cuts_;
  std::vector<std::vector<int>> versions_;
  std::vector<TiedUnits> tied_;
};

}  // namespace

Result<std::vector<PlannedSeat>> seats_of(const PlanRequest& request, const Schedule& schedule,
                                          const std::vector<int>& cuts) {
  auto versions = versions_held(request, schedule);
  if (!versions) return versions.error();
  return SeatMemory(request, schedule, cuts, std::move(*versions)).all();
}

}  // namespace troupe::schedules
