#include "schedules/plan/plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "schedules/plan/plan_draft.h"
#include "schedules/plan/plan_format.h"
#include "schedules/plan/plan_layout.h"
#include "schedules/plan/plan_search.h"

namespace troupe::schedules {

namespace {

// The number of drafts, best by estimate, that are simulated,
constexpr std::size_t most_simulated = 8;
// and of those for each of the best layouts, since estimates of different layouts compare badly.
constexpr std::size_t most_of_layout = 2;
constexpr std::size_t most_layouts = 12;
// More drafts are simulated if their schedules are short: together they have so many actions.
constexpr std::size_t most_actions = 100'000;
// Drafts are selected again and again, since those of long pipelines are large.
constexpr std::size_t most_kept = 64;

std::size_t count_actions(const PlanDraft& draft) {
  std::size_t actions = 0;
  for (const Lane& lane : draft.schedules.front()->lanes) actions += lane.size();
  return actions;
}

/// Keeps the best drafts, and some of each of the best layouts, sorted by estimate. Keeps one
/// device alone in any case, since a caller that learns of slow links asks for it.
void select(std::vector<PlanDraft>& all) {
  std::ranges::stable_sort(all, {}, &PlanDraft::estimate);
  std::map<std::tuple<int, int, int>, std::size_t> of_layout;
  std::size_t actions = 0;
  std::vector<PlanDraft> selected;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& shape = all[k].shape;
    const std::tuple layout(shape.positions, shape.chunks, shape.replicas);
    if (!of_layout.contains(layout) && of_layout.size() >= most_layouts &&
        layout != std::tuple(1, 1, 1))
      continue;
    actions += count_actions(all[k]);
    if (++of_layout[layout] <= most_of_layout || k < most_simulated || actions <= most_actions)
      selected.push_back(std::move(all[k]));
  }
  all = std::move(selected);
}

/// Returns drafts of the fitting shapes with the best estimates, best first. If none fits, returns
/// the error of the shape with the most devices.
Result<std::vector<PlanDraft>> drafts(const PlanRequest& request) {
  const auto shapes = shapes_for(request);
  if (!shapes) return shapes.error();
  std::vector<PlanDraft> all;
  Error reason;
  const PlanShape* failed = nullptr;
  std::size_t kept = 0;
  for (const PlanShape& shape : *shapes) {
    // Hops cost time, not memory: if the cut with hidden hops does not fit, skip this one.
    if (shape.hops == Hops::exposed && failed && failed + 1 == &shape) continue;
    auto drafted = draft(request, shape);
    if (drafted) {
      all.push_back(std::move(*drafted));
      if (all.size() < kept + most_kept) continue;
      select(all);
      kept = all.size();
      continue;
    }
    if (!failed || shape.positions >= failed->positions) reason = drafted.error();
    failed = &shape;
  }
  if (all.empty()) return reason;
  select(all);
  return all;
}

/// Returns the quantity that make_plan() minimizes.
Seconds time_of(const PlanRequest& request, const Plan& plan) {
  return request.objective == Objective::makespan ? plan.step : plan.period;
}

// Forecasts that differ by less than this count as equal.
constexpr double equal_times = 1e-3;

/// Returns the simplest of the plans whose times are alike the shortest. Among equally simple plans
/// the fastest wins; of equally fast ones the one that needs least memory, and then the first.
Plan& simplest(const PlanRequest& request, std::vector<Plan>& plans) {
  Seconds shortest = time_of(request, plans.front());
  for (const Plan& plan : plans) shortest = std::min(shortest, time_of(request, plan));
  const auto rank = [&](const Plan& plan) {
    const Seconds time = time_of(request, plan);
    return std::tuple(time > shortest * (1 + request.alike), plan.stages.size(), plan.chunks,
                      plan.devices(), time);
  };
  Plan& fastest = *std::ranges::min_element(plans, {}, rank);
  const auto is_equal = [&](const Plan& plan) {
    return plan.stages.size() == fastest.stages.size() && plan.chunks == fastest.chunks &&
           plan.devices() == fastest.devices() &&
           time_of(request, plan) <= time_of(request, fastest) * (1 + equal_times);
  };
  Plan* best = &fastest;
  for (Plan& plan : plans)
    if (is_equal(plan) && plan.most_memory() < best->most_memory()) best = &plan;
  return *best;
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
  other.cluster = {};
  other.cluster.nodes = {node};
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

Bytes Plan::most_memory() const {
  Bytes most = 0;
  for (const PlannedSeat& seat : seats) most = std::max(most, memory_at(seat.position));
  return most;
}

Result<Plan> make_plan(const PlanRequest& request) {
  auto plans = candidate_plans(request);
  if (!plans) return plans.error();
  return std::move(plans->front());
}

Result<std::vector<Plan>> candidate_plans(const PlanRequest& request) {
  if (Status sound = check_request(request); !sound) return sound.error();
  const auto found = drafts(request);
  if (!found)
    return lacks_memory(request) ? Error{found.error().text + fewest_devices(request)}
                                 : found.error();
  std::vector<Plan> plans;
  std::vector<const PlanDraft*> drafts_of_plans;
  Error reason;
  for (const PlanDraft& candidate : *found) {
    auto plan = finish(request, candidate);
    if (!plan) {
      reason = plan.error();
      continue;
    }
    plans.push_back(std::move(*plan));
    drafts_of_plans.push_back(&candidate);
  }
  if (plans.empty()) return reason;
  if (request.schedule == "auto" && !request.written && request.effort > 0) {
    const auto best = &simplest(request, plans) - plans.data();
    if (auto searched = search_lanes(request, *drafts_of_plans[static_cast<std::size_t>(best)]))
      plans.push_back(std::move(*searched));
  }
  std::swap(plans.front(), simplest(request, plans));
  std::stable_sort(plans.begin() + 1, plans.end(), [&](const Plan& one, const Plan& other) {
    return time_of(request, one) < time_of(request, other);
  });
  return plans;
}

}  // namespace troupe::schedules
