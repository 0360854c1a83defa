#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/schedule.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// What one action of a recorded step came after.
struct Dependence {
  std::uint32_t before = 0;  // Index of a moment.
  double travel = 0;         // From its end until what follows can start.
};

/// A recorded step as a graph: for each moment all that it had to wait for, earlier ones all.
class StepGraph {
 public:
  /// `moments` as Simulator::record() gives them for the whole schedule; both must outlive the
  /// graph.
  StepGraph(const Schedule& schedule, const std::vector<Moment>& moments,
            const Simulator& simulator, int landing_slots);

  std::span<const Dependence> before(std::size_t moment) const {
    return {dependences_.data() + first_[moment], first_[moment + 1] - first_[moment]};
  }

  /// For each moment how much later it could have ended with the step's end unchanged.
  std::vector<double> slacks(double makespan) const;

  /// The moments that led to the last end without a gap, from the first on. Where several did, the
  /// device's own previous action is preferred.
  std::vector<std::uint32_t> critical_path() const;

  /// The most messages of one queue that had been sent and not been used at a time.
  int deepest_queue() const { return deepest_queue_; }

 private:
  class Builder;

  /// One behind the last moment of the group that this one begins.
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
