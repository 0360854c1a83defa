#include "schedules/plan/plan_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "schedules/simulate/simulator.h"

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
    costs.activations = static_cast<double>(stash + first.stash_shared);
    costs.weight_activations = static_cast<double>(stash_weight + first.stash_weight_shared);
    costs.input_activations = static_cast<double>(first.stash_input);
    if (stage + 2 < cuts.size()) {
      const auto& next = request.units[cuts[stage + 1]];
      costs.boundary = static_cast<double>(next.boundary);
      costs.boundary_back = static_cast<double>(next.boundary_back);
    }
    all.push_back(costs);
  }
  return all;
}

std::size_t peak_of(const Lane& lane, const std::vector<StageCosts>& stages) {
  double now = 0;
  double peak = 0;
  std::size_t at_peak = 0;
  std::size_t group = 0;  // The group's start. A group allocates before it frees.
  for (std::size_t position = 0; position < lane.size(); ++position) {
    now += stash_of(lane[position], stages[lane[position].stage]).taken;
    if (grouped_with_next(lane, position)) continue;
    if (now > peak) {
      peak = now;
      at_peak = position;
    }
    for (; group <= position; ++group)
      now -= stash_of(lane[group], stages[lane[group].stage]).given;
  }
  return at_peak;
}

std::vector<double> held_at(const Lane& lane, std::size_t position,
                            const std::vector<StageCosts>& stages) {
  std::vector<double> held(stages.size(), 0);
  std::size_t group = 0;
  for (std::size_t k = 0; k < lane.size() && k <= position; ++k) {
    held[lane[k].stage] += stash_of(lane[k], stages[lane[k].stage]).taken;
    if (k == position || grouped_with_next(lane, k)) continue;
    for (; group <= k; ++group)
      held[lane[group].stage] -= stash_of(lane[group], stages[lane[group].stage]).given;
  }
  return held;
}

std::vector<double> held_at_peak(const Lane& lane, const std::vector<StageCosts>& stages) {
  return held_at(lane, peak_of(lane, stages), stages);
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
    for (const TiedParameters& shared : units[u].tied) {
      const auto [owner, is_first] = owners.emplace(shared.name, u);
      if (!is_first) tied.push_back({owner->second, u, shared});
    }
  }
  return tied;
}

namespace {

/// Returns whether the lane splits backward passes, so that W may come later than I.
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
        const auto [before, after] = boundary_buffers(device, stage);
        seat.memory.buffers = before + after;
        seats.push_back(std::move(seat));
      }
      const Workspace largest = largest_workspace(std::span(seats).subspan(first));
      if (largest.bytes == 0) continue;
      seats[first + largest.seat].workspace = largest.bytes;
      seats[first + largest.seat].memory.buffers += largest.bytes;
    }
    return seats;
  }

  std::vector<SeatUnits> by_unit() const {
    const auto seats = all();
    std::vector<SeatUnits> units;
    for (std::size_t first = 0; first < seats.size();) {
      std::size_t end = first;
      while (end < seats.size() && seats[end].position == seats[first].position) ++end;
      add_device(std::span(seats).subspan(first, end - first), units);
      first = end;
    }
    return units;
  }

 private:
  /// The temporary memory of a pass or an update: its seat among a device's seats, and its unit of
  /// the model, if it belongs to one.
  struct Workspace {
    Bytes bytes = 0;
    std::size_t seat = 0;
    std::optional<int> unit;
  };

  int count(int stage) const { return cuts_[stage + 1] - cuts_[stage]; }

  bool holds(int device, int stage) const {
    return std::ranges::any_of(schedule_.routes,
                               [&](const Route& route) { return route[stage] == device; });
  }

  int stage_of(int unit) const {
    return static_cast<int>(std::ranges::upper_bound(cuts_, unit) - cuts_.begin()) - 1;
  }

  void add_units(PlannedSeat& seat) const {
    for (int u = cuts_[seat.stage]; u < cuts_[seat.stage + 1]; ++u) {
      const StageMemory unit = lasting(seat, u);
      seat.memory.weights += unit.weights;
      seat.memory.gradients += unit.gradients;
      seat.memory.optimizer += unit.optimizer;
    }
    seat.memory.optimizer += request_.holding.section_grain;
  }

  /// Returns the bytes of a unit that a seat holds at all times.
  StageMemory lasting(const PlannedSeat& seat, int unit) const {
    const int versions = seat.weight_versions;
    const int sums = request_.holding.gradient_sums;
    const UnitCost& costs = request_.units[unit];
    StageMemory memory;
    memory.weights = versions * costs.weight;
    memory.gradients = sums * costs.gradient;
    memory.optimizer = costs.optimizer;
    for (const TiedUnits& tie : tied_) {
      if (tie.other != unit || has_already(seat, tie)) continue;
      memory.weights += versions * tie.copy.weight;
    }
    return memory;
  }

  /// Adds the units of one device's seats.
  void add_device(std::span<const PlannedSeat> seats, std::vector<SeatUnits>& all) const {
    const std::size_t begin = all.size();
    for (const PlannedSeat& seat : seats) {
      SeatUnits& units = all.emplace_back();
      for (int u = cuts_[seat.stage]; u < cuts_[seat.stage + 1]; ++u)
        units.push_back(lasting(seat, u));
      units.emplace_back().optimizer = request_.holding.section_grain;
      const auto [before, after] = boundary_buffers(seat.position, seat.stage);
      units.front().buffers += before;
      units[units.size() - 2].buffers += after;
    }
    add_activations(seats, std::span(all).subspan(begin));
    const Workspace largest = largest_workspace(seats);
    SeatUnits& owner = all[begin + largest.seat];
    const int first = cuts_[seats[largest.seat].stage];
    (largest.unit ? owner[*largest.unit - first] : owner.back()).buffers += largest.bytes;
  }

  /// Splits each stage's activations at the device's peak among its units. All units of a stage are
  /// held and freed together.
  void add_activations(std::span<const PlannedSeat> seats, std::span<SeatUnits> all) const {
    const Lane& lane = schedule_.lanes[seats.front().position];
    const std::size_t peak = peak_of(lane, stage_costs(request_, cuts_));
    int most = 0;
    for (const PlannedSeat& seat : seats) most = std::max(most, count(seat.stage));
    for (int offset = 0; offset < most; ++offset) {
      std::vector<StageCosts> parts;
      parts.reserve(static_cast<std::size_t>(schedule_.stages));
      for (int stage = 0; stage < schedule_.stages; ++stage)
        parts.push_back(part_of(stage, offset));
      const auto held = held_at(lane, peak, parts);
      for (std::size_t k = 0; k < seats.size(); ++k)
        if (offset < count(seats[k].stage))
          all[k][offset].activations = static_cast<Bytes>(held[seats[k].stage]);
    }
  }

  /// Returns the part of a stage's stash that belongs to its unit `offset`, or zeros.
  StageCosts part_of(int stage, int offset) const {
    StageCosts part;
    part.activations = part.weight_activations = part.input_activations = 0;
    if (offset >= count(stage)) return part;
    const UnitCost& unit = request_.units[cuts_[stage] + offset];
    part.activations = static_cast<double>(unit.stash);
    part.weight_activations = static_cast<double>(unit.stash_weight);
    if (offset > 0) return part;
    part.activations += static_cast<double>(unit.stash_shared);
    part.weight_activations += static_cast<double>(unit.stash_weight_shared);
    part.input_activations = static_cast<double>(unit.stash_input);
    return part;
  }

  /// Returns whether the device already holds the tied parameters for an earlier unit.
  bool has_already(const PlannedSeat& seat, const TiedUnits& tie) const {
    if (holds(seat.position, stage_of(tie.owner))) return true;
    return std::ranges::any_of(tied_, [&](const TiedUnits& other) {
      return other.copy.name == tie.copy.name && other.other < tie.other &&
             holds(seat.position, stage_of(other.other));
    });
  }

  struct Buffers {
    Bytes before = 0;  // For the boundary with the previous stage.
    Bytes after = 0;   // For the boundary with the next stage.
  };

  /// Returns the slots for activations and gradients that cross boundaries to other devices.
  Buffers boundary_buffers(int device, int stage) const {
    const int slots = request_.holding.landing_slots + request_.holding.outgoing_slots;
    Buffers buffers;
    for (const Route& route : schedule_.routes) {
      if (route[stage] != device) continue;
      if (stage > 0 && route[stage - 1] != device)
        buffers.before += slots * request_.units[cuts_[stage]].boundary;
      if (stage + 1 < schedule_.stages && route[stage + 1] != device)
        buffers.after += slots * request_.units[cuts_[stage + 1]].boundary;
    }
    return buffers;
  }

  /// Returns the workspace to add other stages' gradients of a tied parameter to the owner's: a
  /// buffer for the sum, and one for a gradient from another device.
  Bytes added_up(const PlannedSeat& seat) const {
    Bytes most = 0;
    for (const TiedUnits& tie : tied_) {
      const int user = stage_of(tie.other);
      if (stage_of(tie.owner) != seat.stage || user == seat.stage) continue;
      const Bytes gradient = tie.copy.gradient;
      most = std::max(most, holds(seat.position, user) ? gradient : 2 * gradient);
    }
    return most;
  }

  /// Returns the bytes that updates need beyond what the passes held, for schedules in which no
  /// pass runs during updates. A stage updates its units one after another: the new weights of each
  /// stay, and its gradient is freed. Other stages may be updated already.
  Bytes update_excess(std::span<const PlannedSeat> seats) const {
    if (is_asynchronous(schedule_)) return 0;
    Bytes free = 0;     // Memory that the passes held.
    Bytes stays = 0;    // Growth of all stages that hold more after their update.
    Bytes longest = 0;  // The largest extra need of one stage during its update.
    for (const PlannedSeat& seat : seats) {
      Bytes now = 0, most = added_up(seat);
      free += seat.memory.activations;
      for (int u = cuts_[seat.stage]; u < cuts_[seat.stage + 1]; ++u) {
        const UnitCost& unit = request_.units[u];
        free += (request_.holding.gradient_sums - 1) * unit.gradient +
                request_.holding.versions_in_the_making * unit.weight;
        most = std::max(most, now + unit.update_room);
        now += unit.weight - unit.gradient;
      }
      stays += std::max<Bytes>(0, now);
      longest = std::max(longest, most - std::max<Bytes>(0, now));
    }
    return stays + longest - free;
  }

  /// Returns the largest workspace. All stages share it: passes and updates run one at a time.
  Workspace largest_workspace(std::span<const PlannedSeat> seats) const {
    if (seats.empty()) return {};
    Workspace largest{.bytes = std::max<Bytes>(0, update_excess(seats)), .seat = 0, .unit = {}};
    const bool halves = has_halves(schedule_.lanes[seats.front().position]);
    for (std::size_t k = 0; k < seats.size(); ++k) {
      Bytes gone = 0;  // Freed by later units, which run backward earlier.
      for (int u = cuts_[seats[k].stage + 1] - 1; u >= cuts_[seats[k].stage]; --u) {
        const UnitCost& unit = request_.units[u];
        if (request_.holding.makes_sum_in_backward) gone -= unit.gradient;
        if (unit.workspace - gone > largest.bytes)
          largest = {.bytes = unit.workspace - gone, .seat = k, .unit = u};
        gone += unit.stash - (halves ? unit.stash_weight : 0);
      }
    }
    return largest;
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

Result<std::vector<SeatUnits>> seat_units(const PlanRequest& request, const Schedule& schedule,
                                          const std::vector<int>& cuts) {
  auto versions = versions_held(request, schedule);
  if (!versions) return versions.error();
  return SeatMemory(request, schedule, cuts, std::move(*versions)).by_unit();
}

}  // namespace troupe::schedules
