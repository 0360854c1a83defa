#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/device_thread.h"
#include "actors/lead/supervisor.h"
#include "tests/actors/little_run.h"

namespace troupe::actors {

/// The result of a complete run of actors with real threads.
struct DevicesRun {
  Outcome::How how = Outcome::How::failed;
  std::string why;
  Digest weights;  // The final weights, if the run is done.
  std::vector<std::string> faults;
  std::vector<std::uint64_t> allocations;  // Allocations of all pools at the end of each step.
  std::uint64_t reserved = 0;              // Bytes of all pools at the end of the last step.
};

/// Returns how long a run on devices may make no progress. Each test program has its own: on a GPU
/// the first pass loads libraries and compiles kernels, while a played device that hangs is to be
/// noticed soon.
std::chrono::milliseconds device_patience();

/// Plays the run on the cores.
DevicesRun play_on_cores(const Piece& piece);
/// Plays the run on a device for each of its lanes. Calls `ended`, unless empty, before it waits
/// for the threads.
DevicesRun play_on_devices(const Piece& piece, DeviceLimits limits = {},
                           const std::function<void()>& ended = {});

}  // namespace troupe::actors
