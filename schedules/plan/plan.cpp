#include "schedules/plan/plan.h"

#include <algorithm>

#include "schedules/plan/plan_draft.h"
#include "schedules/plan/plan_format.h"
#include "schedules/plan/plan_layout.h"
#include "schedules/plan/plan_search.h"

namespace troupe::schedules {

namespace {

// The number of drafts, best by estimate, that are simulated.
constexpr std::size_t most_simulated = 8;

/// Returns drafts of the fitting shapes with the best estimates, best first. If none fits, returns
/// the error of the shape with the most devices.
Result<std::vector<PlanDraft>> drafts(const PlanRequest& request) {
  const auto shapes = shapes_for(request);
  if (!shapes) return shapes.error();
  std::vector<PlanDraft> all;
  Error reason;
  const PlanShape* failed = nullptr;
  for (const PlanShape& shape : *shapes) {
    // Hops cost time, not memory: if the cut with hidden hops does not fit, skip this one.
    if (shape.hops == Hops::exposed && failed && failed + 1 == &shape) continue;
    auto drafted = draft(request, shape);
    if (drafted) {
      const auto behind =
          std::ranges::upper_bound(all, drafted->estimate(), {}, &PlanDraft::estimate);
      all.insert(behind, std::move(*drafted));
      if (all.size() > most_simulated) all.pop_back();
      continue;
    }
    if (!failed || shape.positions >= failed->positions) reason = drafted.error();
    failed = &shape;
  }
  if (all.empty()) return reason;
  return all;
}

/// Returns the quantity that make_plan() minimizes, then the number of devices.
std::pair<Seconds, int> merit(const PlanRequest& request, const Plan& plan) {
  return {request.objective == Objective::makespan ? plan.step : plan.period, plan.devices()};
}

bool fits(const PlanRequest& request) {
  const auto shapes = shapes_for(request);
  return shapes && std::ranges::any_of(*shapes, [&](const PlanShape& shape) {
           return shape.hops == Hops::hidden && draft(request, shape);
         });
}

/// Returns the request with this memory on every device.
PlanRequest with_memory(PlanRequest request, Bytes memory) {
  request.memory.reset();
  for (ClusterNode& node : request.cluster.nodes)
    for (ClusterDevice& device : node.devices) device.memory = memory;
  return request;
}

Bytes largest_memory(const PlanRequest& request) {
  Bytes largest = 0;
  for (DevicePlace place : places(request.cluster))
    largest = std::max(largest, usable_memory(request, place));
  return largest;
}

/// Returns whether the model fits on `devices` devices with the memory of the cluster's largest.
bool would_fit(const PlanRequest& request, int devices, int chunks) {
  PlanRequest other = request;
  ClusterNode node;
  node.devices.resize(static_cast<std::size_t>(devices), {.memory = largest_memory(request)});
  other.cluster = {{node}, {}};
  other.boundaries.clear();
  other.recompute.by_stage.clear();
  other.stages = devices * chunks;
  other.replicas = 1;
  return fits(other);
}

/// Returns the suffix of an out-of-memory error: the number of devices that would do.
std::string fewest_devices(const PlanRequest& request) {
  const auto shapes = shapes_for(request);
  const int chunks = shapes ? shapes->front().chunks : request.chunks;
  const int most = static_cast<int>(request.units.size()) / chunks;
  int too_few = 0;
  int enough = 1;
  while (enough < most && !would_fit(request, enough, chunks)) {
    too_few = enough;
    enough = std::min(2 * enough, most);
  }
  if (enough > most || !would_fit(request, enough, chunks))
    return "; no number of devices with " + show(largest_memory(request)) +
           " would do: use smaller micro-batches, recomputation or devices with more memory";
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (would_fit(request, middle, chunks) ? enough : too_few) = middle;
  }
  return "; the fewest devices with " + show(largest_memory(request)) + " that would do are " +
         std::to_string(enough) + ", with stages = " + std::to_string(enough * chunks) +
         " and one replica";
}

/// Returns whether the request fails only for lack of memory.
bool lacks_memory(const PlanRequest& request) { return fits(with_memory(request, Bytes{1} << 55)); }

}  // namespace

int Plan::devices() const {
  std::size_t count = 0;
  for (const PlannedReplica& replica : replicas) count += replica.places.size();
  return static_cast<int>(count);
}

Bytes Plan::memory_at(int position) const {
  Bytes bytes = 0;
  for (const PlannedSeat& seat : seats)
    if (seat.position == position) bytes += seat.memory.total();
  return bytes;
}

Result<Plan> make_plan(const PlanRequest& request) {
  if (Status sound = check_request(request); !sound) return sound.error();
  const auto found = drafts(request);
  if (!found)
    return lacks_memory(request) ? Error{found.error().text + fewest_devices(request)}
                                 : found.error();
  std::optional<Plan> best;
  const PlanDraft* best_draft = nullptr;
  Error reason;
  for (const PlanDraft& candidate : *found) {
    auto plan = finish(request, candidate);
    if (!plan) {
      reason = plan.error();
      continue;
    }
    if (best && merit(request, *plan) >= merit(request, *best)) continue;
    best = std::move(*plan);
    best_draft = &candidate;
  }
  if (!best) return reason;
  if (request.schedule == "auto" && !request.written && request.effort > 0) {
    auto searched = search_lanes(request, *best_draft);
    if (searched && merit(request, *searched) < merit(request, *best)) return *searched;
  }
  return *best;
}

}  // namespace troupe::schedules
