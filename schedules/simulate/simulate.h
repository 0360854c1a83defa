#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// When an action ran, and how much later it could have ended with the step's end unchanged.
struct TimedAction {
  double start = 0;
  double end = 0;
  Wait wait = Wait::nothing;  // What it waited for while its device was idle.
  double waited = 0;          // How long.
  double slack = 0;
};

/// An action of a schedule: its device and its position in the lane.
struct Place {
  int device = 0;
  int position = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// How a device spent the makespan: `busy` and the parts of `idle` add up to it.
struct DeviceUse {
  struct Idle {
    double activation = 0;
    double gradient = 0;
    double credit = 0;
    double reduction = 0;
    double finished = 0;  // After its last action.

    double total() const { return activation + gradient + credit + reduction + finished; }
  };

  double busy = 0;
  Idle idle;
  double span = 0;        // From its first start to its last end.
  double peak = 0;        // The most activations it held,
  int peak_position = 0;  // while this action of its lane ran.
};

/// The time and the memory that a schedule takes, given costs.
struct Simulation {
  std::vector<std::vector<TimedAction>> lanes;  // One for each action of the schedule.
  std::vector<DeviceUse> devices;
  double makespan = 0;               // From the first start to the last end of one step.
  double period = 0;                 // Between steps that follow one another with no barrier.
  double bubble = 0;                 // The idle part of one step: of devices * makespan.
  double steady_bubble = 0;          // The idle part of devices * period.
  std::vector<Place> critical_path;  // What the makespan is made of, from the first action on.
  int deepest_queue = 0;  // The most messages of a kind that waited, or travelled, to one stage.

  double busy() const;
  double largest_span() const;
  double largest_peak() const;
};

/// Plays one step, and four in a row for the period. The same answer on every machine, to the bit.
/// A schedule that comes to no end is an error that says who waits for what.
Result<Simulation> simulate(const Schedule& schedule, const Costs& costs);

/// "makespan 18, bubble 33.3 % of one step; period 18, bubble 33.3 % in steady state; peaks 3 2 1"
std::string summary(const Simulation& simulation);

}  // namespace troupe::schedules
