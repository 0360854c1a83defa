#include "schedules/check/wait_graph.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <utility>

namespace troupe::schedules {
namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t search_budget = 20'000'000;  // Edges visited to find the shortest cycle.

int length(const WaitGraph::Edge& edge) { return edge.cause == Cause::order ? 0 : 1; }

}  // namespace

WaitGraph::WaitGraph(std::vector<std::uint32_t> node_of) : node_of_(std::move(node_of)) {}

std::uint32_t WaitGraph::add_thing() {
  node_of_.push_back(static_cast<std::uint32_t>(node_of_.size()));
  return node_of_.back();
}

WaitGraph::Outgoing WaitGraph::outgoing() const {
  Outgoing outgoing;
  outgoing.begin.assign(node_of_.size() + 1, 0);
  for (const Edge& edge : edges_) ++outgoing.begin[node_of_[edge.first] + 1];
  for (std::size_t node = 0; node < node_of_.size(); ++node)
    outgoing.begin[node + 1] += outgoing.begin[node];
  outgoing.edges.resize(edges_.size());
  std::vector<std::uint32_t> next(outgoing.begin.begin(), outgoing.begin.end() - 1);
  for (std::size_t edge = 0; edge < edges_.size(); ++edge)
    outgoing.edges[next[node_of_[edges_[edge].first]]++] = static_cast<std::uint32_t>(edge);
  return outgoing;
}

std::vector<bool> WaitGraph::stuck(const Outgoing& outgoing) const {
  std::vector<std::uint32_t> waits_for(node_of_.size(), 0);
  for (const Edge& edge : edges_) ++waits_for[node_of_[edge.then]];
  std::vector<std::uint32_t> ready;
  for (std::uint32_t node = 0; node < node_of_.size(); ++node)
    if (waits_for[node] == 0) ready.push_back(node);
  std::vector<bool> stuck(node_of_.size(), true);
  while (!ready.empty()) {
    const std::uint32_t node = ready.back();
    ready.pop_back();
    stuck[node] = false;
    for (std::uint32_t k = outgoing.begin[node]; k < outgoing.begin[node + 1]; ++k) {
      const std::uint32_t then = node_of_[edges_[outgoing.edges[k]].then];
      if (--waits_for[then] == 0) ready.push_back(then);
    }
  }
  return stuck;
}

bool WaitGraph::finishes() const {
  const std::vector<bool> stuck = this->stuck(outgoing());
  return std::ranges::find(stuck, true) == stuck.end();
}

std::vector<WaitGraph::Edge> WaitGraph::any_circle(const std::vector<bool>& stuck) const {
  // Each stuck node waits for another stuck node, so following the edges reaches a cycle.
  std::vector<std::uint32_t> waits_by(node_of_.size(), nobody);
  std::uint32_t node = nobody;
  for (std::uint32_t edge = 0; edge < edges_.size(); ++edge)
    if (stuck[node_of_[edges_[edge].first]]) {
      node = node_of_[edges_[edge].then];
      waits_by[node] = edge;
    }
  if (node == nobody) return {};
  const auto next = [&](std::uint32_t at) { return node_of_[edges_[waits_by[at]].first]; };
  for (std::size_t step = 0; step < node_of_.size(); ++step) node = next(node);
  std::vector<Edge> circle;
  const std::uint32_t start = node;
  do {
    circle.push_back(edges_[waits_by[node]]);
    node = next(node);
  } while (node != start);
  return circle;
}

std::vector<WaitGraph::Edge> WaitGraph::shortest_circle() const {
  const Outgoing outgoing = this->outgoing();
  const std::vector<bool> stuck = this->stuck(outgoing);
  std::vector<Edge> best = any_circle(stuck);
  int best_length = 0;
  for (const Edge& edge : best) best_length += length(edge);

  // Searches from each stuck node to the nodes that wait for it, nearest first, back to itself.
  std::vector<int> distance(node_of_.size());
  std::vector<std::uint32_t> seen_from(node_of_.size(), nobody);
  std::vector<std::uint32_t> by_edge(node_of_.size());
  std::size_t looked_at = 0;
  for (std::uint32_t start = 0; start < node_of_.size() && looked_at < search_budget; ++start) {
    if (!stuck[start]) continue;
    bool improved = false;
    std::deque<std::pair<std::uint32_t, int>> front = {{start, 0}};
    while (!front.empty() && front.front().second < best_length) {
      const auto [node, reached] = front.front();
      front.pop_front();
      if (node != start && reached > distance[node]) continue;
      for (std::uint32_t k = outgoing.begin[node]; k < outgoing.begin[node + 1]; ++k) {
        ++looked_at;
        const Edge& edge = edges_[outgoing.edges[k]];
        const std::uint32_t then = node_of_[edge.then];
        const int far = reached + length(edge);
        if (far >= best_length || (seen_from[then] == start && distance[then] <= far)) continue;
        seen_from[then] = start;
        distance[then] = far;
        by_edge[then] = outgoing.edges[k];
        if (then == start) {
          best_length = far;
          improved = true;
        } else if (length(edge) == 0) {
          front.push_front({then, far});
        } else {
          front.push_back({then, far});
        }
      }
    }
    if (!improved) continue;
    best.clear();
    std::uint32_t node = start;
    do {
      best.push_back(edges_[by_edge[node]]);
      node = node_of_[best.back().first];
    } while (node != start);
  }
  return best;
}

}  // namespace troupe::schedules
