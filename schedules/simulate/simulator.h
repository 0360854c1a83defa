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

/// What an action waited for while its device had nothing else to do.
enum class Wait : std::uint8_t { nothing, activation, gradient, credit, reduction };

/// When one action of a lane ran. The members of a group share their times.
struct Moment {
  std::uint32_t device = 0;
  std::uint32_t position = 0;
  Wait wait = Wait::nothing;
  double free = 0;  // When the device, or its reduction engine, had done what came before.
  double start = 0;
  double end = 0;
};

/// Whether an action starts and ends together with the next one of its lane. An A is in no group:
/// it occupies no device.
bool grouped_with_next(const Lane& lane, std::size_t position);

/// Times the lanes of one pipeline over and over; evaluating allocates nothing.
///
/// Every device plays its lane in order, each action as soon as its inputs have come. Messages have
/// their way to themselves; where landing slots are bounded, a message leaves when the one so many
/// before it in its queue has been used. A reduction occupies no device, only the one reduction
/// engine of the device that gives. A floating W is timed at its place.
class Simulator {
 public:
  /// For this schedule, and all that differ from it in the order of their lanes alone. Costs that
  /// make no sense, or ids that are out of the schedule's own ranges, are errors.
  static Result<Simulator> make(const Schedule& schedule, const Costs& costs);
  ~Simulator();
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;

  /// From the first start to the last end of one step; none if the lanes wait for each other.
  std::optional<double> makespan(const std::vector<Lane>& lanes);

  /// How far apart steps are that follow one another with no barrier: the last two ends of four.
  std::optional<double> period(const std::vector<Lane>& lanes);

  /// One step, its moments in an order in which each comes after all that it waited for. Whether
  /// every lane came to its end; if not, blocked() says where they stand.
  bool record(const std::vector<Lane>& lanes, std::vector<Moment>& moments);

  /// After an evaluation that gave nothing: which device waits for what.
  std::string blocked(const std::vector<Lane>& lanes) const;

  /// How long a message to this action travels: an activation to F, a gradient to B or I.
  double travel(Action to) const;

 private:
  class Engine;
  explicit Simulator(std::unique_ptr<Engine> engine);

  std::unique_ptr<Engine> engine_;
};

}  // namespace troupe::schedules
