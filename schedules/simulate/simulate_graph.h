#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// A dependency of an action on an earlier one.
struct Dependence {
  std::uint32_t before = 0;  // Index of a moment.
  double travel = 0;         // From its end until the dependent action can start.
};

/// A recorded step as a graph: each moment with all moments that it waited for, which are earlier.
class StepGraph {
 public:
  /// Builds the graph from the moments of Simulator::record() for the whole schedule. `schedule`
  /// and `moments` must outlive the graph.
  StepGraph(const Schedule& schedule, const std::vector<Moment>& moments,
            const Simulator& simulator, int landing_slots);

  std::span<const Dependence> before(std::size_t moment) const {
    return {dependences_.data() + first_[moment], first_[moment + 1] - first_[moment]};
  }

  /// Returns, by moment, how much later it could end without delaying the step's end.
  std::vector<double> slacks(double makespan) const;

  /// Returns the moments that led to the last end without a gap, in order. Among several candidates
  /// it prefers the device's own previous action.
  std::vector<std::uint32_t> critical_path() const;

  /// Returns the most messages of one queue that were sent and not yet used.
  int deepest_queue() const { return deepest_queue_; }

 private:
  class Builder;

  /// Return the end (exclusive) and the first moment of the group that contains a moment.
  std::size_t group_end(std::size_t moment) const;
  std::size_t group_begin(std::size_t moment) const;
  Action action(std::size_t moment) const;

  const Schedule& schedule_;
  const std::vector<Moment>& moments_;
  std::vector<std::size_t> first_;
  std::vector<Dependence> dependences_;
  int deepest_queue_ = 0;
};

}  // namespace troupe::schedules
