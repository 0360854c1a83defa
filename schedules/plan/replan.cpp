#include "schedules/plan/replan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "schedules/generators/registry.h"

namespace troupe::schedules {
namespace {

bool is_asynchronous(const PlanRequest& request) {
  const NamedSchedule* named = find_schedule(request.schedule);
  return !request.written && named && named->mode == Mode::asynchronous;
}

}  // namespace

Replanned replan(PlanRequest request, Shrink shrink) {
  request.effort = 0;
  Replanned made;
  auto plan = make_plan(request);
  if (plan) {
    made.plan = std::move(*plan);
    return made;
  }
  made.reason = plan.error().text;
  if (shrink == Shrink::never || is_asynchronous(request) || request.written) return made;
  request.stages.reset();
  request.boundaries.clear();
  request.replicas.reset();
  if (auto smaller = make_plan(request)) made.plan = std::move(*smaller);
  return made;
}

PlanBook::PlanBook(PlanRequest request) : request_(std::move(request)) {
  const auto& nodes = request_.cluster.nodes;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto alike = std::ranges::find_if(first_of_, [&](int first) {
      return nodes[static_cast<std::size_t>(first)].same_class(nodes[node]);
    });
    class_of_.push_back(static_cast<int>(alike - first_of_.begin()));
    if (alike == first_of_.end()) first_of_.push_back(static_cast<int>(node));
  }
}

PlanBook::Counts PlanBook::counts_of(const std::vector<int>& nodes) const {
  Counts counts(first_of_.size());
  for (const int node : nodes)
    ++counts[static_cast<std::size_t>(class_of_[static_cast<std::size_t>(node)])];
  return counts;
}

/// Returns the cached or new plan. The planned cluster lists its nodes class by class.
const Replanned& PlanBook::plan_for(const Counts& counts) {
  const auto known = plans_.find(counts);
  if (known != plans_.end()) return known->second;
  PlanRequest request = request_;
  request.cluster.nodes.clear();
  for (std::size_t kind = 0; kind < counts.size(); ++kind)
    for (int n = 0; n < counts[kind]; ++n) {
      auto node = request_.cluster.nodes[static_cast<std::size_t>(first_of_[kind])];
      node.name += "/" + std::to_string(n);
      request.cluster.nodes.push_back(std::move(node));
    }
  ++made_;
  Replanned made;
  if (request.cluster.nodes.empty())
    made.reason = "no node is left";
  else
    made = replan(std::move(request), Shrink::if_needed);
  return plans_.emplace(counts, std::move(made)).first->second;
}

PlanBook::Entry PlanBook::look_up(const std::vector<int>& nodes) {
  Entry entry{plan_for(counts_of(nodes)), {}};
  if (!entry.made.plan) return entry;
  std::vector<int> ordered = nodes;
  std::ranges::stable_sort(ordered, {},
                           [this](int node) { return class_of_[static_cast<std::size_t>(node)]; });
  std::set<int> used;
  for (const auto& replica : entry.made.plan->replicas)
    for (const auto& place : replica.places)
      used.insert(ordered[static_cast<std::size_t>(place.node)]);
  for (const int node : ordered)
    if (used.contains(node)) entry.nodes.push_back(node);
  return entry;
}

void PlanBook::foresee(const std::vector<int>& nodes) {
  const Counts all = counts_of(nodes);
  for (std::size_t first = 0; first < all.size(); ++first) {
    if (all[first] == 0) continue;
    Counts one = all;
    --one[first];
    (void)plan_for(one);
    for (std::size_t second = first; second < one.size(); ++second) {
      if (one[second] == 0) continue;
      Counts two = one;
      --two[second];
      (void)plan_for(two);
    }
  }
}

}  // namespace troupe::schedules
