#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/executor.h"
#include "actors/withheld.h"
#include "core/memory/device_progress.h"

namespace troupe::actors {

/// How far a device's thread trusts it.
struct DeviceLimits {
  /// Jobs that the device may have and not have done: one that it does, and one to go on with. More
  /// would only let the host decide earlier what comes next.
  std::size_t ahead = 2;
  /// A device that does nothing for so long of what it was given has failed. One that follows
  /// another is given the time of all that the other may have ahead.
  std::chrono::nanoseconds patience = std::chrono::seconds(12);
};

/// A thread that gives its jobs to a device and goes on: a job is done, and what it said is said,
/// when the device has passed the mark behind it. The thread itself looks for that between jobs,
/// and while there are none.
class DeviceThread final : public Executor {
 public:
  /// `devices` are all that work on one another's memory. `pace` may be null, and else outlives it.
  DeviceThread(std::unique_ptr<Device> device, std::unique_ptr<MemorySource> memory,
               std::shared_ptr<DeviceProgress> devices, DeviceLimits limits,
               const Pace* pace = nullptr);
  /// Finishes what was posted. What a device that has failed had is left to the end of the process:
  /// nothing can be asked of it any more, not even to take its memory back.
  ~DeviceThread() override;

  using Executor::post;
  void post(std::unique_ptr<Job> job) override { jobs_.put(std::move(job)); }
  MemoryPool& memory() override { return *memory_; }
  MemoryPool& host_memory() override { return device_->host_memory(); }
  bool has_device() const override { return true; }
  std::optional<std::string> fault() const override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A job that the device has.
  struct Given {
    std::unique_ptr<Job> job;
    std::vector<Withheld::Saying> said;
    Device::Mark begins = 0;  // Once this is passed; 0: at once.
    Device::Mark mark = 0;
    DeviceProgress::Moment moment = 0;
    Clock::time_point begun;  // To be given, or by the device.
  };

  void run();
  void give(std::unique_ptr<Job> job, Stream& stream, DeviceWork& work);
  void look(DeviceWork& work);
  void begin_first();
  void finish_first();
  void rest() const;
  void fail(const std::string& why);

  std::unique_ptr<Device> device_;
  std::shared_ptr<DeviceProgress> devices_;
  DeviceLimits limits_;
  const Pace* pace_;
  std::unique_ptr<MemoryPool> memory_;  // Outlives the jobs, which hold tensors.
  JobQueue jobs_;
  std::deque<Given> given_;
  Clock::time_point
      moved_;               // When it was last given something, or was seen to have done something.
  Clock::time_point done_;  // The latter alone.
  Clock::time_point looked_;
  Clock::duration waited_{};  // Since then, for what it was given first.
  mutable std::mutex mutex_;
  std::optional<std::string> fault_;
  std::thread thread_;
};

}  // namespace troupe::actors
