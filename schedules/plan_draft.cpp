#include "schedules/plan_draft.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "schedules/operators.h"
#include "schedules/partition_order.h"
#include "schedules/plan_layout.h"
#include "schedules/plan_memory.h"
#include "schedules/registry.h"

namespace troupe::schedules {

namespace {

// How often cuts are made anew for devices that turned out to hold too much.
constexpr int most_rounds = 8;

std::vector<SchedulePtr> distinct(std::vector<SchedulePtr> schedules) {
  // Replicas with equally many micro-batches share their schedule.
  std::ranges::stable_sort(schedules, {}, [](const SchedulePtr& s) { return s->micro_batches; });
  const auto [first, last] = std::ranges::unique(schedules);
  schedules.erase(first, last);
  return schedules;
}

/// Which backward passes a schedule has.
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

Seconds work_of(const UnitCost& unit, Backward backward, Recompute recompute) {
  const Seconds halves = unit.backward_input + unit.backward_weight;
  Seconds work = unit.forward;
  if (recompute == Recompute::everything) work += unit.forward;
  if (backward.fused && backward.halves) return work + std::max(unit.backward, halves);
  return work + (backward.halves ? halves : unit.backward);
}

Chain chain_of(const PlanRequest& request, Backward backward) {
  const bool kept = request.recompute == Recompute::nothing;
  Chain chain;
  for (const UnitCost& unit : request.units) {
    Piece piece;
    piece.work = work_of(unit, backward, request.recompute);
    piece.weights = unit.weight;
    piece.fixed = request.holding.gradient_sums * unit.gradient + unit.optimizer;
    // What is recomputed is there for one micro-batch at a time.
    (kept ? piece.stash : piece.fixed) += unit.stash;
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
    const TiedParameters& copy = *request.units[tie.other].tied;
    const int versions = 1 + request.holding.versions_in_the_making;
    chain.ties.push_back(
        {tie.owner, tie.other,
         versions * copy.weight + request.holding.gradient_sums * copy.gradient + copy.optimizer});
  }
  return chain;
}

/// A draft in the making: shape, places and lanes are there.
class Drafter {
 public:
  Drafter(const PlanRequest& request, PlanDraft draft)
      : request_(request), draft_(std::move(draft)), versions_(0) {}

  Result<PlanDraft> run() {
    auto versions = versions_held(request_, schedule());
    if (!versions) return versions.error();
    versions_ = std::move(*versions);
    pose();
    if (Status sound = check_partition(problem_); !sound) return sound.error();
    order_devices();
    for (int round = 0; round < most_rounds; ++round) {
      auto found = partition(problem_);
      if (!found) return misfit();
      draft_.cuts = std::move(found->cuts);
      draft_.bottleneck = found->bottleneck;
      auto fitted = with_lanes(request_, draft_, draft_.schedules);
      if (fitted || round + 1 == most_rounds) return fitted;
      tighten();
    }
    assert(false && "the last round returns");
    return Error{};
  }

 private:
  const Schedule& schedule() const { return *draft_.schedules.front(); }
  int positions() const { return draft_.shape.positions; }

  std::vector<DevicePlace> column(int position) const {
    std::vector<DevicePlace> places;
    for (const auto& row : draft_.places) places.push_back(row[position]);
    return places;
  }

  /// The partition problem. What a seat holds beside its units is taken from its device's memory.
  void pose() {
    problem_.chain = chain_of(request_, backward_of(schedule()));
    problem_.hops = draft_.shape.hops;
    pose_seats();
    pose_devices();
  }

  void pose_seats() {
    const Route& route = schedule().routes.front();
    // One of each micro-batch in flight, in whole or in part.
    StageCosts one;
    one.activations = one.weight_activations = one.input_activations = 1;
    const std::vector<StageCosts> ones(static_cast<std::size_t>(schedule().stages), one);
    problem_.seats.clear();
    for (int s = 0; s < schedule().stages; ++s) {
      const int device = route[s];
      Seat seat;
      seat.device = device;
      seat.copies = versions_[device][s];
      for (const SchedulePtr& lanes : distinct(draft_.schedules))
        seat.in_flight =
            std::max(seat.in_flight, static_cast<int>(held_at_peak(lanes->lanes[device], ones)[s]));
      if (s + 1 < schedule().stages)
        seat.next = slowest_link(request_.cluster, column(device), column(route[s + 1]));
      problem_.seats.push_back(seat);
    }
  }

  void pose_devices() {
    Bytes largest_boundary = 0;
    Bytes largest_input = 0;
    for (std::size_t u = 0; u < request_.units.size(); ++u) {
      const bool is_cut = problem_.chain.pieces[u].cut != Cut::forbidden;
      if (u > 0 && is_cut)
        largest_boundary = std::max(largest_boundary, request_.units[u].boundary);
      largest_input = std::max(largest_input, request_.units[u].stash_input);
    }
    const int slots = request_.holding.landing_slots + request_.holding.outgoing_slots;
    problem_.devices.clear();
    for (int p = 0; p < positions(); ++p) {
      Capacity device;
      device.memory = memory_at(request_, draft_, p);
      device.speed = at(request_.cluster, draft_.places.front()[p]).speed;
      for (DevicePlace place : column(p))
        device.speed = std::min(device.speed, at(request_.cluster, place).speed);
      problem_.devices.push_back(device);
    }
    const Route& route = schedule().routes.front();
    for (int s = 0; s < schedule().stages; ++s) {
      const int device = route[s];
      Bytes reserve = 0;
      if (s > 0 && route[s - 1] != device) reserve += slots * largest_boundary;
      if (s + 1 < schedule().stages && route[s + 1] != device) reserve += slots * largest_boundary;
      if (request_.recompute == Recompute::everything)
        reserve += problem_.seats[s].in_flight * largest_input;
      problem_.devices[device].memory -= reserve;
    }
  }

  /// One pipeline of unequal devices may have them in any order, and leave some out.
  void order_devices() {
    const bool is_straight = draft_.shape.chunks == 1 && schedule().routes.size() == 1;
    if (draft_.shape.replicas > 1 || !is_straight || all_alike(request_.cluster)) return;
    OrderProblem order;
    order.problem = problem_;
    order.problem.devices.clear();
    const auto all = places(request_.cluster);
    const Bytes reserve = memory_at(request_, draft_, 0) - problem_.devices[0].memory;
    for (DevicePlace place : all) {
      if (place.device == 0) order.groups.emplace_back();
      order.groups.back().push_back(static_cast<int>(order.problem.devices.size()));
      order.problem.devices.push_back(
          {at(request_.cluster, place).speed, usable_memory(request_, place) - reserve});
    }
    for (const ClusterNode& node : request_.cluster.nodes) {
      order.inside.latency = std::max(order.inside.latency, node.inside.latency);
      order.inside.bandwidth = std::min(order.inside.bandwidth, node.inside.bandwidth);
      order.outside.latency = std::max(order.outside.latency, node.outside.latency);
      order.outside.bandwidth = std::min(order.outside.bandwidth, node.outside.bandwidth);
    }
    const auto found = partition_any_order(order);
    if (!found) return;  // The order at hand will tell what does not fit.
    for (int p = 0; p < positions(); ++p) draft_.places[0][p] = all[found->devices[p]];
    pose_seats();
    pose_devices();
  }

  /// The estimate of a seat was too low: its device must take less.
  void tighten() {
    std::vector<Bytes> held(static_cast<std::size_t>(positions()), 0);
    const auto seats = seats_of(request_, schedule(), draft_.cuts);
    assert(seats && "their versions have been replayed before");
    for (const PlannedSeat& seat : *seats) held[seat.position] += seat.memory.total();
    for (int p = 0; p < positions(); ++p)
      problem_.devices[p].memory -= std::max<Bytes>(0, held[p] - memory_at(request_, draft_, p));
  }

  /// Which stage does not fit, in terms of the model and the cluster.
  Error misfit() const {
    const Misfit misfit = closest_misfit(problem_);
    const auto& row = draft_.places.front();
    const Bytes available = memory_at(request_, draft_, misfit.device);
    const Bytes reserve = available - misfit.available;
    const auto& units = request_.units;
    std::string text = "stage " + std::to_string(misfit.stage) + " (" + units[misfit.first].name;
    if (misfit.last - misfit.first > 1) text += " to " + units[misfit.last - 1].name;
    text += ") does not fit: ";
    text += to_string(request_.cluster, row[misfit.device]) + " needs " +
            std::to_string(misfit.needed + reserve) + " bytes and has " +
            std::to_string(available) + ", " + std::to_string(misfit.needed - misfit.available) +
            " too few";
    return Error{text};
  }

  const PlanRequest& request_;
  PlanDraft draft_;
  std::vector<std::vector<int>> versions_;
  PartitionProblem problem_;
};

}  // namespace

Seconds PlanDraft::estimate() const {
  double most = 0;
  for (const SchedulePtr& schedule : schedules)
    most = std::max(
        most, schedule->micro_batches + static_cast<double>(shape.positions - 1) / shape.chunks);
  return bottleneck * most;
}

Bytes memory_at(const PlanRequest& request, const PlanDraft& draft, int position) {
  Bytes least = usable_memory(request, draft.places.front()[position]);
  for (const auto& row : draft.places)
    least = std::min(least, usable_memory(request, row[position]));
  return least;
}

Result<Schedule> lanes_for(const PlanRequest& request, const PlanShape& shape, int micro_batches) {
  Schedule lanes;
  if (request.written) {
    lanes = *request.written;
  } else {
    auto made = generate(
        shape.schedule,
        {.stages = shape.stages(), .micro_batches = micro_batches, .chunks = shape.chunks});
    if (!made) return made.error();
    lanes = std::move(*made);
  }
  const NamedSchedule* named = find_schedule(shape.schedule);
  if (request.step_every && named && named->mode == Mode::asynchronous)
    lanes = with_update_every(lanes, *request.step_every);
  if (request.recompute == Recompute::everything)
    lanes = with_recompute(lanes, std::vector<bool>(static_cast<std::size_t>(lanes.stages), true));
  return with_updates(lanes);
}

Result<PlanDraft> draft(const PlanRequest& request, const PlanShape& shape) {
  PlanDraft draft;
  draft.shape = shape;
  draft.places = lay_out(request, shape.positions, shape.replicas);
  std::map<int, SchedulePtr> made;
  for (int micro_batches : share_out(request, draft.places)) {
    if (!made.contains(micro_batches)) {
      auto lanes = lanes_for(request, shape, micro_batches);
      if (!lanes) return lanes.error();
      made.emplace(micro_batches, std::make_shared<const Schedule>(std::move(*lanes)));
    }
    draft.schedules.push_back(made.at(micro_batches));
  }
  return Drafter(request, std::move(draft)).run();
}

Result<PlanDraft> with_lanes(const PlanRequest& request, PlanDraft draft,
                             std::vector<SchedulePtr> schedules) {
  draft.schedules = std::move(schedules);
  draft.seats.clear();
  // Replicas with more micro-batches may hold more of them: each seat shows the most.
  for (const SchedulePtr& schedule : distinct(draft.schedules)) {
    auto seats = seats_of(request, *schedule, draft.cuts);
    if (!seats) return seats.error();
    if (draft.seats.empty()) draft.seats = *seats;
    for (std::size_t k = 0; k < seats->size(); ++k)
      if ((*seats)[k].memory.total() > draft.seats[k].memory.total()) draft.seats[k] = (*seats)[k];
  }
  std::vector<Bytes> held(draft.places.front().size(), 0);
  for (PlannedSeat& seat : draft.seats) {
    held[seat.position] += seat.memory.total();
    seat.places.clear();
    for (const auto& row : draft.places) seat.places.push_back(row[seat.position]);
  }
  for (std::size_t p = 0; p < held.size(); ++p) {
    const Bytes available = memory_at(request, draft, static_cast<int>(p));
    if (held[p] > available)
      return Error{to_string(request.cluster, draft.places.front()[p]) + " needs " +
                   std::to_string(held[p]) + " bytes and has " + std::to_string(available) + ", " +
                   std::to_string(held[p] - available) + " too few"};
  }
  return draft;
}

}  // namespace troupe::schedules
