#include <algorithm>
#include <numeric>
#include <utility>

#include "schedules/check/rules.h"

namespace troupe::schedules {
namespace {

/// Describes a deadlock: "0B0 on device 0 needs 1B0 on device 1, which comes after 1F1, ..."
std::string chain(const std::vector<WaitGraph::Edge>& circle, const PassTable& passes) {
  constexpr std::size_t most = 24;
  std::string text = passes.describe(circle.front().then);
  std::string joint = " ";
  for (std::size_t k = 0; k < circle.size(); ++k, joint = ", which ") {
    if (k >= most) return text + ", and so on in a circle of " + std::to_string(circle.size());
    const bool is_order = circle[k].cause == Cause::order;
    // Consecutive waits along one lane are described as one wait.
    while (is_order && k + 1 < circle.size() && circle[k + 1].cause == Cause::order) ++k;
    const std::uint32_t first = circle[k].first;
    const std::uint32_t going_on = circle[(k + 1) % circle.size()].then;
    if (is_order)
      text += joint + "comes after " + to_string(passes.action(going_on));
    else
      text += joint + "needs " + passes.describe(first);
    if (!is_order && going_on != first)
      text += ", which overlaps with " + to_string(passes.action(going_on));
  }
  return text;
}

/// Rotates the cycle to start at a data dependency, if any, and there at the lowest pass number.
void turn(std::vector<WaitGraph::Edge>& circle) {
  const auto begin = std::ranges::min_element(circle, {}, [](const WaitGraph::Edge& edge) {
    return std::pair(edge.cause != Cause::data, edge.then);
  });
  std::rotate(circle.begin(), begin, circle.end());
}

}  // namespace

WaitGraph pass_graph(const Schedule& schedule, const PassTable& passes) {
  std::vector<std::uint32_t> node_of(passes.size());
  std::iota(node_of.begin(), node_of.end(), 0u);
  for (int d = 0; d < schedule.devices(); ++d)
    for (std::size_t k = 1; k < schedule.lanes[d].size(); ++k)
      if (schedule.lanes[d][k - 1].flags & Action::with_next)
        node_of[passes.number(d, k)] = node_of[passes.number(d, k - 1)];

  WaitGraph graph(node_of);
  for (int d = 0; d < schedule.devices(); ++d) {
    const Lane& lane = schedule.lanes[d];
    for (std::size_t k = 0; k < lane.size(); ++k) {
      const std::uint32_t number = passes.number(d, k);
      if (k > 0 && node_of[number - 1] != node_of[number])
        graph.add(number - 1, number, Cause::order);
      const auto needs = [&](std::uint32_t pass) {
        if (pass != PassTable::none) graph.add(pass, number, Cause::data);
      };
      const auto [kind, flags, stage, m] = lane[k];
      if (kind == Kind::forward && stage > 0) needs(passes.forward(stage - 1, m));
      if (kind == Kind::recompute) needs(passes.forward(stage, m));
      if (gives_input_gradient(kind)) {
        const std::uint32_t recompute = passes.recompute(stage, m);
        needs(recompute != PassTable::none ? recompute : passes.forward(stage, m));
        if (stage + 1 < schedule.stages) needs(passes.input(stage + 1, m));
      }
      if (kind == Kind::backward_weight) needs(passes.input(stage, m));
    }
  }
  return graph;
}

void check_acyclic(const Schedule& schedule, const PassTable& passes, Findings& findings) {
  // A local-order violation (V3) also closes a cycle; do not report it twice.
  if (!findings.empty()) return;
  const WaitGraph graph = pass_graph(schedule, passes);
  if (graph.finishes()) return;
  auto circle = graph.shortest_circle();
  turn(circle);
  const std::uint32_t waiting = circle.front().then;
  const int device = passes.device(waiting);
  findings.add(Rule::acyclic, device, passes.position(waiting),
               "device " + std::to_string(device) + " waits forever: " + chain(circle, passes));
}

}  // namespace troupe::schedules
