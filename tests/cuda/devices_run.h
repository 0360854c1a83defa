#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/device_thread.h"
#include "actors/lead/supervisor.h"
#include "tests/actors/little_run.h"

namespace troupe::actors {

/// A run of actors with all their threads, to its end.
struct DevicesRun {
  Outcome::How how = Outcome::How::failed;
  std::string why;
  Digest weights;  // Where it is done.
  std::vector<std::string> faults;
  std::vector<std::uint64_t> allocations;  // Of all pools, at the end of each step.
  std::uint64_t reserved = 0;              // Bytes of all pools, at the end of the last step.
};

/// On the cores,
DevicesRun play_on_cores(const Piece& piece);
/// or on a device for each of its lanes. `ended` is called before its threads are waited for; may
/// be empty.
DevicesRun play_on_devices(const Piece& piece, DeviceLimits limits = {},
                           const std::function<void()>& ended = {});

}  // namespace troupe::actors
