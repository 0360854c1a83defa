#pragma once

#include <vector>

#include "kernels/linear.h"
#include "schedules/simulate/cluster.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::apps {

/// How this machine is shared out where no cluster file is given.
struct Shares {
  int nodes = 1;
  int devices = 1;  // Of all nodes together; every node has as many, rounded up.
  std::vector<schedules::Bytes> gpus = {};  // What each has left; none: the cores compute.
};

/// Nodes on this machine, each device with an equal part of its memory, or of a GPU's.
schedules::Cluster this_machine(const Shares& shares, const schedules::DeviceProfile& profile);

/// What so many devices on this machine's cores reach each, by measurement: products, attention and
/// convolutions of a middling size, and copies for all that only moves numbers. Takes some tenths
/// of a second, and comes out a little different each time.
schedules::DeviceProfile measure_this_machine(int devices, kernels::Precision precision);

/// A middling device that is the same everywhere: where a model is cut must not hang on what was
/// measured a moment ago.
schedules::DeviceProfile nominal_device();

}  // namespace troupe::apps
