#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"

namespace troupe::schedules {

/// The reason why an action waited while its device was idle.
enum class Wait : std::uint8_t { nothing, activation, gradient, credit, reduction };

/// The time of one action of a lane. The members of a group share their times.
struct Moment {
  std::uint32_t device = 0;
  std::uint32_t position = 0;
  Wait wait = Wait::nothing;
  double free = 0;  // When the device, or its reduction engine, finished its previous action.
  double start = 0;
  double end = 0;
};

/// Returns whether an action starts and ends together with the next one of its lane. An A is never
/// in a group, because it occupies no device.
bool grouped_with_next(const Lane& lane, std::size_t position);

/// Times lanes of one pipeline repeatedly; evaluation does not allocate.
///
/// Each device plays its lane in order and starts an action when its inputs have arrived. Messages
/// do not share bandwidth. With n landing slots, a message leaves when the message n places before
/// it in its queue is used. A reduction occupies only the reduction engine of the device that
/// gives. A floating W runs at its place in the lane.
class Simulator {
 public:
  /// Creates a simulator for this schedule and all that differ only in the order of their lanes.
  /// Invalid costs or ids out of range are errors.
  static Result<Simulator> make(const Schedule& schedule, const Costs& costs);
  ~Simulator();
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;

  /// Returns the time from first start to last end of one step, or nothing on a deadlock.
  std::optional<double> makespan(const std::vector<Lane>& lanes);

  /// Returns the distance of steps without a barrier: the last two ends of four steps.
  std::optional<double> period(const std::vector<Lane>& lanes);

  /// Records one step; each moment comes after all moments that it waited for. Returns false on a
  /// deadlock, which blocked() explains.
  bool record(const std::vector<Lane>& lanes, std::vector<Moment>& moments);

  /// Explains the deadlock of the last evaluation: which device waits for what.
  std::string blocked(const std::vector<Lane>& lanes) const;

  /// Returns the travel time of the message to an action: an activation to F, a gradient to B or I.
  double travel(Action to) const;

 private:
  class Engine;
  explicit Simulator(std::unique_ptr<Engine> engine);

  std::unique_ptr<Engine> engine_;
};

}  // namespace troupe::schedules
