#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "actors/device_thread.h"
#include "actors/executor.h"
#include "actors/pace.h"

namespace troupe::actors {

/// Threads that compute for a device of a run have its number behind this in their name.
inline constexpr std::string_view device_thread_prefix = "device ";

/// An executor that computes on cores.
struct OnCores {
  int threads = 1;
  const Pace* pace = nullptr;      // May be null; else it outlives the executor.
  std::string name = "computing";  // The name of its thread.
};

/// An executor that drives a device.
struct OnDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<MemorySource> memory;
  std::shared_ptr<DeviceProgress> devices;  // Tracks all devices that use each other's memory.
  DeviceLimits limits;
  const Pace* pace = nullptr;      // May be null; else it outlives the executor.
  std::string name = "computing";  // The name of its thread.
};

/// Opens executors. Main functions hand down what opens real ones. A simulator opens executors
/// whose jobs it runs itself. An executor that can run no job any more destroys it, so that nobody
/// waits for it. Any thread may call the functions. It outlives the executors.
class Executors {
 public:
  virtual ~Executors() = default;
  virtual std::unique_ptr<Executor> open(const OnCores& order) = 0;
  virtual std::unique_ptr<Executor> open(OnDevice order) = 0;
};

/// Opens executors with a thread each.
class RealExecutors final : public Executors {
 public:
  std::unique_ptr<Executor> open(const OnCores& order) override {
    return std::make_unique<ComputingThread>(order.threads, order.pace, order.name);
  }
  std::unique_ptr<Executor> open(OnDevice order) override {
    return std::make_unique<DeviceThread>(std::move(order.device), std::move(order.memory),
                                          std::move(order.devices), order.limits, order.pace,
                                          order.name);
  }
};

}  // namespace troupe::actors
