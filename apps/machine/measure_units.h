#pragma once

#include <chrono>
#include <vector>

#include "apps/unit_times.h"

namespace troupe::apps {

/// The devices that measure, all at the same time, and their limits.
struct MeasuringDevices {
  int count = 1;
  int threads = 1;                   // The threads of each device.
  double longest_micro_batch = 0.6;  // Seconds.
  std::chrono::milliseconds patience{500};
};

/// Trains a model for some micro-batches of made data on each device. Returns the shortest times of
/// each unit, as means over the devices. They include what rates of kernels do not tell: small
/// kernels, and all that lies between kernels. Takes the longer of `patience` and three to six
/// micro-batches. Returns nothing if the model is too large for that, or computes on GPUs.
std::vector<UnitTimes> measure_units(const MeasuredModel& measured,
                                     const MeasuringDevices& devices);

/// Measures units on so many devices that share this machine's cores.
std::vector<UnitTimes> measure_units_here(const MeasuredModel& measured, int devices);

/// Returns whether that takes a second or more.
bool takes_seconds_to_measure(const MeasuredModel& measured);

/// Returns the times on a nominal device, as one core of this machine foretells them. Takes a tenth
/// of a second at most. Returns nothing if the model is too large for that.
std::vector<UnitTimes> nominal_unit_times(const MeasuredModel& measured);

}  // namespace troupe::apps
