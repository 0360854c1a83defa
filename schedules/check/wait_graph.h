#pragma once

#include <cstdint>
#include <vector>

namespace troupe::schedules {

/// Why something waits for something else.
enum class Cause : std::uint8_t {
  order,    // It comes later in its lane.
  data,     // It needs what the other makes.
  landing,  // A transfer needs the slot that a consumer empties.
  room,     // A producer needs the slot that a transfer empties.
  stream,   // It comes later in its stream.
};

/// What waits for what. Things that run together as one are one node.
class WaitGraph {
 public:
  struct Edge {
    std::uint32_t first;  // Must be done
    std::uint32_t then;   // before this begins.
    Cause cause;
  };

  /// `node_of[thing]` is the thing that stands for all of its node, itself if it is alone.
  explicit WaitGraph(std::vector<std::uint32_t> node_of);

  /// A further thing, a node by itself.
  std::uint32_t add_thing();
  void add(std::uint32_t first, std::uint32_t then, Cause cause) {
    edges_.push_back({first, then, cause});
  }

  /// Whether everything comes to run, in time linear in nodes and edges.
  bool finishes() const;

  /// A circle in which each waits for the next: each edge's `first` is in the node of the next
  /// edge's `then`. None if there is no circle. It is one with the fewest edges that are not of
  /// `order`, unless the search for it takes too long: then it is the best that was found.
  std::vector<Edge> shortest_circle() const;

 private:
  struct Outgoing {
    std::vector<std::uint32_t> begin;  // By node, into `edges`.
    std::vector<std::uint32_t> edges;
  };
  Outgoing outgoing() const;
  /// By node: it never comes to run, for a circle is among what it waits for.
  std::vector<bool> stuck(const Outgoing& outgoing) const;
  std::vector<Edge> any_circle(const std::vector<bool>& stuck) const;

  std::vector<std::uint32_t> node_of_;
  std::vector<Edge> edges_;
};

}  // namespace troupe::schedules
