#pragma once

#include <vector>

#include "kernels/linear.h"
#include "schedules/simulate/cluster.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::apps {

/// How this machine is divided if no cluster file is given.
struct Shares {
  int nodes = 1;
  int devices = 1;  // Devices of all nodes together; each node has an equal number, rounded up.
  schedules::Bytes memory = 0;  // The bytes of this machine that the nodes may use.
  // The free bytes of each GPU; empty if the cores compute.
  std::vector<schedules::Bytes> gpus = {};
};

/// Describes this machine as `shares.nodes` nodes. Each device has an equal part of the machine's
/// memory, or of a GPU's.
schedules::Cluster this_machine(const Shares& shares, const schedules::DeviceProfile& profile);

/// Measures the speed of each of `devices` devices that share this machine's cores: matrix
/// products, attention and convolutions of medium size, and copies for operations that only move
/// data. Takes some tenths of a second; results vary a little.
schedules::DeviceProfile measure_this_machine(int devices, kernels::Precision precision);

/// Measures the rate of matrix products in this precision, in operations per second, on `threads`
/// threads together. Takes some ten milliseconds.
double measure_products(int threads, kernels::Precision precision);

/// Measures how many times as long products take in this precision as in fp32, on one thread. Takes
/// some ten milliseconds.
double measure_slowness(kernels::Precision precision);

/// Returns a fixed profile of a medium device, for plans whose cuts must not depend on
/// measurements.
schedules::DeviceProfile nominal_device();

}  // namespace troupe::apps
