#include "schedules/plan/plan_draft.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "schedules/partition/partition_order.h"
#include "schedules/plan/plan_format.h"
#include "schedules/plan/plan_layout.h"
#include "schedules/plan/plan_memory.h"

namespace troupe::schedules {

namespace {

// The limit of repeated cuts when devices turn out to hold too much.
constexpr int most_rounds = 8;

/// Drafts cuts and seats for a given shape, places and lanes.
class Drafter {
 public:
  Drafter(const PlanRequest& request, PlanDraft draft)
      : request_(request), draft_(std::move(draft)) {}

  Result<PlanDraft> run() {
    auto versions = versions_held(request_, schedule());
    if (!versions) return versions.error();
    versions_ = std::move(*versions);
    problem_ = problem_of(request_, draft_, versions_);
    if (Status sound = check_partition(problem_); !sound) return sound.error();
    order_devices();
    for (int round = 0; round < most_rounds; ++round) {
      auto found = partition(problem_);
      if (!found) return misfit();
      draft_.cuts = std::move(found->cuts);
      draft_.bottleneck = found->bottleneck;
      auto fitted = with_lanes(request_, draft_, draft_.schedules);
      if (fitted) fitted->estimate = estimate_of(request_, *fitted);
      if (fitted || round + 1 == most_rounds) return fitted;
      tighten();
    }
    assert(false && "the last round returns");
    return Error{};
  }

 private:
  const Schedule& schedule() const { return *draft_.schedules.front(); }
  int positions() const { return draft_.shape.positions; }

  /// Chooses the order of unequal devices of a single pipeline, which may leave some out.
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
    for (const auto& [zones, link] : request_.cluster.measured) {
      order.outside.latency = std::max(order.outside.latency, link.latency);
      order.outside.bandwidth = std::min(order.outside.bandwidth, link.bandwidth);
    }
    const auto found = partition_any_order(order);
    if (!found) return;  // The current order will report what does not fit.
    for (int p = 0; p < positions(); ++p) draft_.places[0][p] = all[found->devices[p]];
    problem_ = problem_of(request_, draft_, versions_);
  }

  /// Lowers a device's memory in the problem by the bytes that the estimate of its seats missed.
  void tighten() {
    std::vector<Bytes> held(static_cast<std::size_t>(positions()), 0);
    const auto seats = seats_of(request_, schedule(), draft_.cuts);
    assert(seats && "their versions have been replayed before");
    for (const PlannedSeat& seat : *seats) held[seat.position] += seat.memory.total();
    for (int p = 0; p < positions(); ++p)
      problem_.devices[p].memory -= std::max<Bytes>(0, held[p] - memory_at(request_, draft_, p));
  }

  /// Describes the stage that does not fit in terms of the model and the cluster.
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
            show(misfit.needed + reserve) + " and has " + show(available) + ", " +
            show(misfit.needed - misfit.available) + " too little";
    return Error{text};
  }

  const PlanRequest& request_;
  PlanDraft draft_;
  std::vector<std::vector<int>> versions_;
  PartitionProblem problem_;
};

}  // namespace

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
  if (request.recompute.anywhere()) {
    std::vector<bool> again;
    for (int stage = 0; stage < lanes.stages; ++stage) again.push_back(request.recompute.in(stage));
    lanes = with_recompute(lanes, again);
  }
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
  // Replicas with more micro-batches may keep more activations; each seat shows the largest.
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
      return Error{to_string(request.cluster, draft.places.front()[p]) + " needs " + show(held[p]) +
                   " and has " + show(available) + ", " + show(held[p] - available) +
                   " too little"};
  }
  return draft;
}

}  // namespace troupe::schedules
