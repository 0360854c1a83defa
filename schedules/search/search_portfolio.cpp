#include "schedules/search/search_portfolio.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "core/json.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"
#include "schedules/generators/registry.h"
#include "schedules/generators/retime.h"
#include "schedules/operators.h"
#include "schedules/search/list_schedule.h"
#include "schedules/search/search_warm_up.h"

namespace troupe::schedules {
namespace {

// The patience of list and re-timed schedules, as fractions of a W.
constexpr std::array<double, 3> patiences = {0, 0.5, 1};

PipelineShape shape_of(const SearchRequest& request, const Costs& partition) {
  return {.stages = static_cast<int>(partition.stages.size()),
          .micro_batches = request.micro_batches,
          .chunks = chunks_of(request, partition)};
}

struct Placement {
  std::string_view name;
  std::vector<Route> routes;
};

/// Returns the placements for lists. With one stage per device, a snake equals a loop.
std::vector<Placement> placements(const PipelineShape& shape) {
  std::vector<Placement> all = {{"loop", {looped(shape.stages, shape.devices())}}};
  if (shape.chunks > 1) all.push_back({"snake", {snaked(shape.stages, shape.devices())}});
  return all;
}

/// A schedule and the partition for which it was made.
struct Base {
  Schedule schedule;
  const Costs* costs;
  Origin origin;
};

std::vector<Base> named_candidates(const SearchRequest& request) {
  std::vector<Base> bases;
  for (const auto& partition : request.partitions)
    for (const auto& named : named_schedules()) {
      if (named.mode != Mode::synchronous) continue;
      auto made = generate(named.name, shape_of(request, partition));
      if (!made || made->devices() != request.devices) continue;
      if (made->routes.size() > 1 && request.weight_copies < 2) continue;
      bases.push_back({std::move(*made), &partition, Origin::named});
    }
  return bases;
}

/// Returns 1f1b schedules whose warm-up fits the costs and the caps.
std::vector<Base> fitted_candidates(const SearchRequest& request) {
  std::vector<Base> bases;
  for (const auto& partition : request.partitions) {
    if (chunks_of(request, partition) != 1) continue;
    const auto credits = best_warm_up(partition, request.caps, request.micro_batches);
    if (!credits.empty())
      bases.push_back(
          {with_credits("1f1b-window", request.micro_batches, credits), &partition, Origin::made});
  }
  return bases;
}

std::string_view name_of(Preference preference) {
  switch (preference) {
    case Preference::backward_first:
      return "backward-first";
    case Preference::forward_first:
      return "forward-first";
    case Preference::as_listed:
      return "as-listed";
  }
  return "?";
}

std::string_view name_of(First first) {
  switch (first) {
    case First::deepest_stage:
      return "deepest";
    case First::oldest_micro_batch:
      return "oldest";
  }
  return "?";
}

RetimeSettings retime_settings(const SearchRequest& request, const Base& base) {
  const auto& costs = *base.costs;
  const auto& route = base.schedule.routes[0];
  RetimeSettings settings;
  double hops = 0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const auto& cost = costs.stages[stage];
    const double slowness = costs.slowness_of(route[stage]);
    const auto time = [&](double work) { return costs.launch + slowness * work; };
    settings.stages.push_back({.forward = time(cost.forward),
                               .backward = time(cost.backward),
                               .input = time(cost.backward_input),
                               .weight = time(cost.backward_weight),
                               .stash = cost.activations});
    if (stage > 0)
      hops += costs.travel(route[stage - 1], route[stage], costs.stages[stage - 1].boundary);
  }
  // Uses the average hop for all; the evaluator times the result with the true hops.
  if (costs.stages.size() > 1) settings.hop = hops / static_cast<double>(costs.stages.size() - 1);
  settings.caps = request.caps;
  settings.caps.resize(static_cast<std::size_t>(request.devices),
                       std::numeric_limits<double>::infinity());
  return settings;
}

/// Visits the schedule re-timed with each preference and patience; returns whether to continue.
bool visit_retimed(const Base& base, const std::string& name, RetimeSettings settings,
                   const Visit& visit) {
  for (const double patience : patiences)
    for (const auto preference :
         {Preference::backward_first, Preference::forward_first, Preference::as_listed}) {
      settings.patience = patience;
      settings.preference = preference;
      auto retimed = retime(base.schedule, settings);
      if (!retimed) continue;
      retimed->name = "retime(" + name + "," + std::string(name_of(preference)) + "," +
                      shortest(patience) + ")";
      if (!visit(std::move(*retimed), *base.costs, Origin::made)) return false;
    }
  return true;
}

bool visit_lists(const SearchRequest& request, const Costs& partition, const Visit& visit) {
  const auto shape = shape_of(request, partition);
  const int devices = request.devices;
  for (const auto& [place, routes] : placements(shape))
    for (const int window : {devices, devices * 3 / 2, 2 * devices - 1})
      for (const auto first : {First::deepest_stage, First::oldest_micro_batch})
        for (const double patience : patiences) {
          const ListSettings settings{
              .window = window, .first = first, .patience = patience, .caps = request.caps};
          auto name = "list(v" + std::to_string(shape.chunks) + "," + std::string(place) +
                      ",window-" + std::to_string(window) + "," + std::string(name_of(first)) +
                      "," + shortest(patience) + ")";
          auto made =
              list_schedule(empty_schedule(std::move(name), shape, routes), partition, settings);
          if (made && !visit(std::move(*made), partition, Origin::made)) return false;
        }
  return true;
}

}  // namespace

int chunks_of(const SearchRequest& request, const Costs& partition) {
  return static_cast<int>(partition.stages.size()) / request.devices;
}

bool holds(const Schedule& schedule, Kind kind) {
  for (const auto& lane : schedule.lanes)
    for (const auto action : lane)
      if (action.kind == kind) return true;
  return false;
}

void visit_portfolio(const SearchRequest& request, const Visit& visit) {
  auto bases = named_candidates(request);
  for (auto& fitted : fitted_candidates(request)) bases.push_back(std::move(fitted));
  bool go_on = true;
  for (const auto& base : bases) go_on &= visit(base.schedule, *base.costs, base.origin);
  for (const auto& partition : request.partitions)
    go_on = go_on && visit_lists(request, partition, visit);
  for (const auto& base : bases) {
    const auto settings = retime_settings(request, base);
    go_on = go_on && visit_retimed(base, base.schedule.name, settings, visit);
    if (!go_on || !holds(base.schedule, Kind::backward)) continue;
    const Base split{split_backward(base.schedule), base.costs, Origin::made};
    go_on = visit_retimed(split, "split(" + base.schedule.name + ")", settings, visit);
  }
}

LowerBound portfolio_bound(const SearchRequest& request) {
  LowerBound least = {std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::infinity()};
  for (const auto& partition : request.partitions) {
    const auto shape = shape_of(request, partition);
    auto all = placements(shape);
    const auto& straight = all[0].routes[0];
    if (shape.chunks == 1 && request.weight_copies > 1)
      all.push_back({"both ways", {straight, reversed(straight, request.devices)}});
    for (auto& placement : all) {
      const auto bound =
          lower_bound(empty_schedule("", shape, std::move(placement.routes)), partition);
      least.makespan = std::min(least.makespan, bound.makespan);
      least.period = std::min(least.period, bound.period);
    }
  }
  return least;
}

}  // namespace troupe::schedules
