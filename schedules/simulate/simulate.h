#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "schedules/schedule.h"
#include "schedules/simulate/simulate_costs.h"
#include "schedules/simulate/simulator.h"

namespace troupe::schedules {

/// The time of an action, and how much later it could end without delaying the step.
struct TimedAction {
  double start = 0;
  double end = 0;
  Wait wait = Wait::nothing;  // The event that it waited for while its device was idle.
  double waited = 0;          // The duration of that wait.
  double slack = 0;
};

/// An action of a schedule: its device and its position in the lane.
struct Place {
  int device = 0;
  int position = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The use of a device's time: `busy` and the parts of `idle` add up to the makespan.
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
  double peak = 0;        // The most activations held at once.
  int peak_position = 0;  // The action of its lane at the peak.
};

/// The simulated time and memory of a schedule.
struct Simulation {
  std::vector<std::vector<TimedAction>> lanes;  // One for each action of the schedule.
  std::vector<DeviceUse> devices;
  double makespan = 0;               // From the first start to the last end of one step.
  double period = 0;                 // Between consecutive steps without a barrier.
  double bubble = 0;                 // The idle fraction of devices * makespan.
  double steady_bubble = 0;          // The idle fraction of devices * period.
  std::vector<Place> critical_path;  // The actions that determine the makespan, in order.
  int deepest_queue = 0;  // The most messages of one kind in transit or waiting for one stage.

  double busy() const;
  double largest_span() const;
  double largest_peak() const;
};

/// Simulates one step, and four in a row for the period. The result is equal on all machines, bit
/// for bit. A deadlock is an error that says which device waits for what.
Result<Simulation> simulate(const Schedule& schedule, const Costs& costs);

/// Formats the main figures: "makespan 18, bubble 33.3 % of one step; period 18, bubble ...".
std::string summary(const Simulation& simulation);

}  // namespace troupe::schedules
