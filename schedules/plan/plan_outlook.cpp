#include <algorithm>

#include "schedules/plan/plan.h"
#include "schedules/plan/replan.h"

namespace troupe::schedules {

namespace {

// The number of combinations grows with the square of the number of classes.
constexpr std::size_t most_classes = 6;

/// Nodes that are interchangeable.
struct NodeClass {
  std::vector<int> nodes;
};

std::vector<NodeClass> classes_of(const Cluster& cluster) {
  std::vector<NodeClass> classes;
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    const auto known = std::ranges::find_if(classes, [&](const NodeClass& c) {
      return cluster.nodes[c.nodes.front()].same_class(cluster.nodes[n]);
    });
    if (known != classes.end())
      known->nodes.push_back(n);
    else if (classes.size() < most_classes)
      classes.push_back({{n}});
  }
  return classes;
}

/// Returns all combinations of one or two classes, as indices.
std::vector<std::vector<int>> combinations(int classes) {
  std::vector<std::vector<int>> all;
  for (int a = 0; a < classes; ++a) all.push_back({a});
  for (int a = 0; a < classes; ++a)
    for (int b = a; b < classes; ++b) all.push_back({a, b});
  return all;
}

void plan_anew(const PlanRequest& request, Outlook& outlook) {
  auto changed =
      replan(request, outlook.event == Outlook::Event::goes ? Shrink::if_needed : Shrink::never);
  outlook.reason = std::move(changed.reason);
  outlook.plan = std::move(changed.plan);
}

Outlook without(const PlanRequest& request, std::vector<int> nodes) {
  Outlook outlook;
  outlook.event = Outlook::Event::goes;
  PlanRequest left = request;
  std::ranges::sort(nodes, std::ranges::greater());
  for (int node : nodes) {
    outlook.nodes.insert(outlook.nodes.begin(), request.cluster.nodes[node].name);
    left.cluster.nodes.erase(left.cluster.nodes.begin() + node);
  }
  if (left.cluster.nodes.empty())
    outlook.reason = "no node is left";
  else
    plan_anew(std::move(left), outlook);
  return outlook;
}

Outlook with_more(const PlanRequest& request, const std::vector<int>& nodes) {
  Outlook outlook;
  outlook.event = Outlook::Event::comes;
  PlanRequest grown = request;
  for (int node : nodes) {
    outlook.nodes.push_back(request.cluster.nodes[node].name);
    grown.cluster.nodes.push_back(request.cluster.nodes[node]);
    grown.cluster.nodes.back().name += "+" + std::to_string(outlook.nodes.size());
  }
  plan_anew(std::move(grown), outlook);
  return outlook;
}

}  // namespace

std::vector<Outlook> outlooks(const PlanRequest& request) {
  const auto classes = classes_of(request.cluster);
  const auto chosen = combinations(static_cast<int>(classes.size()));
  std::vector<Outlook> all;
  for (const auto& combination : chosen) {
    const NodeClass& first = classes[combination.front()];
    const NodeClass& last = classes[combination.back()];
    const bool is_pair = combination.size() == 2;
    if (is_pair && combination[0] == combination[1]) {
      if (first.nodes.size() > 1)
        all.push_back(without(request, {first.nodes.back(), first.nodes[first.nodes.size() - 2]}));
    } else if (is_pair) {
      all.push_back(without(request, {first.nodes.back(), last.nodes.back()}));
    } else {
      all.push_back(without(request, {first.nodes.back()}));
    }
  }
  for (const auto& combination : chosen) {
    std::vector<int> nodes;
    for (int number : combination) nodes.push_back(classes[number].nodes.front());
    all.push_back(with_more(request, nodes));
  }
  return all;
}

}  // namespace troupe::schedules
