#pragma once

#include <cstdint>
#include <vector>

namespace troupe::schedules {

/// The reason why one thing waits for another.
enum class Cause : std::uint8_t {
  order,    // It comes later in its lane.
  data,     // It needs the other's output.
  landing,  // A transfer needs the slot that a consumer empties.
  room,     // A producer needs the slot that a transfer empties.
  stream,   // It comes later in its stream.
};

/// A graph of waits between things. Things that run together form one node.
class WaitGraph {
 public:
  struct Edge {
    std::uint32_t first;  // This must end
    std::uint32_t then;   // before this begins.
    Cause cause;
  };

  /// `node_of[thing]` is the representative of the thing's node; a lone thing represents itself.
  explicit WaitGraph(std::vector<std::uint32_t> node_of);

  /// Adds a thing as a node of its own.
  std::uint32_t add_thing();
  void add(std::uint32_t first, std::uint32_t then, Cause cause) {
    edges_.push_back({first, then, cause});
  }

  /// Returns whether everything runs in the end (no cycle). Takes linear time.
  bool finishes() const;

  /// Returns a cycle of waits: each edge's `first` is in the node of the next edge's `then`.
  /// Returns nothing if there is no cycle. Minimizes the edges other than `order`, unless the
  /// search exceeds its budget; then it returns the best cycle found.
  std::vector<Edge> shortest_circle() const;

 private:
  struct Outgoing {
    std::vector<std::uint32_t> begin;  // Indexed by node; positions in `edges`.
    std::vector<std::uint32_t> edges;
  };
  Outgoing outgoing() const;
  /// Returns, by node, whether it can never run because it waits for a cycle.
  std::vector<bool> stuck(const Outgoing& outgoing) const;
  std::vector<Edge> any_circle(const std::vector<bool>& stuck) const;

  std::vector<std::uint32_t> node_of_;
  std::vector<Edge> edges_;
};

}  // namespace troupe::schedules
