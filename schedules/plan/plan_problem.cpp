#include <algorithm>

#include "schedules/plan/plan_draft.h"
#include "schedules/plan/plan_layout.h"
#include "schedules/plan/plan_memory.h"

namespace troupe::schedules {

namespace {

/// The kinds of backward pass in a schedule.
struct Backward {
  bool fused = false;
  bool halves = false;
};

Backward backward_of(const Schedule& schedule) {
  Backward found;
  for (const Lane& lane : schedule.lanes) {
    for (const Action action : lane) {
      found.fused = found.fused || action.kind == Kind::backward;
      found.halves = found.halves || action.kind == Kind::backward_input;
    }
  }
  return found;
}

enum class Kept : std::uint8_t { all, input };

Seconds work_of(const UnitCost& unit, Backward backward, Kept kept) {
  const Seconds halves = unit.backward_input + unit.backward_weight;
  Seconds work = unit.forward;
  if (kept == Kept::input) work += unit.forward;
  if (backward.fused && backward.halves) return work + std::max(unit.backward, halves);
  return work + (backward.halves ? halves : unit.backward);
}

/// Returns what a unit keeps. With recomputation by stage, `boundaries` give the unit's stage.
Kept kept_of(const PlanRequest& request, int unit) {
  const auto& cuts = request.boundaries;
  const int stage = request.recompute.by_stage.empty()
                        ? 0
                        : static_cast<int>(std::ranges::upper_bound(cuts, unit) - cuts.begin()) - 1;
  return request.recompute.in(stage) ? Kept::input : Kept::all;
}

Chain chain_of(const PlanRequest& request, Backward backward) {
  Chain chain;
  for (int u = 0; u < static_cast<int>(request.units.size()); ++u) {
    const UnitCost& unit = request.units[static_cast<std::size_t>(u)];
    const Kept kept = kept_of(request, u);
    Piece piece;
    piece.work = work_of(unit, backward, kept);
    piece.weights = unit.weight;
    piece.fixed = request.holding.gradient_sums * unit.gradient + unit.optimizer;
    // Recomputed activations exist for one micro-batch at a time.
    (kept == Kept::all ? piece.stash : piece.fixed) += unit.stash;
    piece.passing = unit.workspace;
    piece.boundary = unit.boundary;
    piece.reduced = unit.gradient;
    chain.pieces.push_back(piece);
  }
  if (!request.boundaries.empty()) {
    for (Piece& piece : chain.pieces) piece.cut = Cut::forbidden;
    for (std::size_t k = 0; k + 1 < request.boundaries.size(); ++k)
      chain.pieces[request.boundaries[k]].cut = Cut::required;
  }
  for (const TiedUnits& tie : tied_units(request.units)) {
    const int versions = 1 + request.holding.versions_in_the_making;
    chain.ties.push_back({tie.owner, tie.other, versions * tie.copy.weight});
  }
  return chain;
}

/// Returns all devices at one position, one for each replica.
std::vector<DevicePlace> column(const PlanDraft& draft, int position) {
  std::vector<DevicePlace> places;
  for (const auto& row : draft.places) places.push_back(row[position]);
  return places;
}

std::vector<Seat> seats_for(const PlanRequest& request, const PlanDraft& draft,
                            const std::vector<std::vector<int>>& versions) {
  const Schedule& schedule = *draft.schedules.front();
  const Route& route = schedule.routes.front();
  // Counts every micro-batch in flight as one, whether it is held in whole or in part.
  StageCosts one;
  one.activations = one.weight_activations = one.input_activations = 1;
  const std::vector<StageCosts> ones(static_cast<std::size_t>(schedule.stages), one);
  const auto lanes = distinct(draft.schedules);
  std::vector<Seat> seats;
  for (int s = 0; s < schedule.stages; ++s) {
    const int device = route[s];
    Seat seat;
    seat.device = device;
    seat.copies = versions[device][s];
    for (const SchedulePtr& played : lanes)
      seat.in_flight =
          std::max(seat.in_flight, static_cast<int>(held_at_peak(played->lanes[device], ones)[s]));
    if (s + 1 < schedule.stages)
      seat.next = slowest_link(request.cluster, column(draft, device), column(draft, route[s + 1]));
    seats.push_back(seat);
  }
  return seats;
}

/// Returns, by position, the least speed and memory of the devices there.
std::vector<Capacity> devices_for(const PlanRequest& request, const PlanDraft& draft) {
  std::vector<Capacity> devices;
  for (int p = 0; p < draft.shape.positions; ++p) {
    Capacity device{at(request.cluster, draft.places.front()[p]).speed,
                    memory_at(request, draft, p)};
    for (DevicePlace place : column(draft, p))
      device.speed = std::min(device.speed, at(request.cluster, place).speed);
    devices.push_back(device);
  }
  return devices;
}

/// Subtracts the most that seats can hold besides their units from the memory of their devices.
void reserve_buffers(const PlanRequest& request, const Route& route, PartitionProblem& problem) {
  Bytes largest_boundary = 0;
  Bytes largest_input = 0;
  for (std::size_t u = 0; u < request.units.size(); ++u) {
    const bool is_cut = u > 0 && problem.chain.pieces[u].cut != Cut::forbidden;
    if (is_cut) largest_boundary = std::max(largest_boundary, request.units[u].boundary);
    largest_input = std::max(largest_input, request.units[u].stash_input);
  }
  const int slots = request.holding.landing_slots + request.holding.outgoing_slots;
  for (std::size_t s = 0; s < route.size(); ++s) {
    Bytes& memory = problem.devices[route[s]].memory;
    if (s > 0 && route[s - 1] != route[s]) memory -= slots * largest_boundary;
    if (s + 1 < route.size() && route[s + 1] != route[s]) memory -= slots * largest_boundary;
    if (request.recompute.in(static_cast<int>(s)))
      memory -= problem.seats[s].in_flight * largest_input;
  }
}

}  // namespace

std::vector<SchedulePtr> distinct(std::vector<SchedulePtr> schedules) {
  // Replicas with equally many micro-batches share their schedule.
  std::ranges::stable_sort(schedules, {}, [](const SchedulePtr& s) { return s->micro_batches; });
  schedules.erase(std::unique(schedules.begin(), schedules.end()), schedules.end());
  return schedules;
}

PartitionProblem problem_of(const PlanRequest& request, const PlanDraft& draft,
                            const std::vector<std::vector<int>>& versions) {
  const Schedule& schedule = *draft.schedules.front();
  PartitionProblem problem;
  problem.chain = chain_of(request, backward_of(schedule));
  problem.hops = draft.shape.hops;
  problem.seats = seats_for(request, draft, versions);
  problem.devices = devices_for(request, draft);
  reserve_buffers(request, schedule.routes.front(), problem);
  return problem;
}

}  // namespace troupe::schedules
