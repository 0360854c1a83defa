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

#include "actors/deferred_sends.h"
#include "actors/executor.h"
#include "core/memory/device_progress.h"

namespace troupe::actors {

/// The limits of a device's thread.
struct DeviceLimits {
  /// Jobs in the device's queue: one that runs and one that follows. More would only force the host
  /// to decide earlier what comes next.
  std::size_t ahead = 2;
  /// A device that finishes nothing for this long has failed. A job that follows another device's
  /// work gets the time of all jobs in that device's queue in addition.
  std::chrono::nanoseconds patience = std::chrono::seconds(12);
};

/// An executor that enqueues its jobs on a device and continues. A job is done, and its messages
/// are sent, when the device has passed the mark behind the job. The thread polls for that between
/// jobs and while there are none.
class DeviceThread final : public Executor {
 public:
  /// `devices` tracks all devices that use each other's memory. `pace` may be null or must outlive
  /// it.
  DeviceThread(std::unique_ptr<Device> device, std::unique_ptr<MemorySource> memory,
               std::shared_ptr<DeviceProgress> devices, DeviceLimits limits,
               const Pace* pace = nullptr, std::string name = "computing");
  /// Finishes all posted jobs. A failed device and its memory are leaked until the process ends,
  /// since nothing can be asked of the device, not even to free memory.
  ~DeviceThread() override;

  using Executor::post;
  void post(std::unique_ptr<Job> job) override { jobs_.put(std::move(job)); }
  MemoryPool& memory() override { return *memory_; }
  MemoryPool& host_memory() override { return device_->host_memory(); }
  bool has_device() const override { return true; }
  std::optional<std::string> fault() const override;

 private:
  using Clock = std::chrono::steady_clock;

  /// A job in the device's queue.
  struct Given {
    std::unique_ptr<Job> job;
    std::vector<DeferredSends::Saying> said;
    Device::Mark begins = 0;  // The job begins when this mark is passed; 0: at once.
    Device::Mark mark = 0;
    DeviceProgress::Moment moment = 0;
    Clock::time_point begun;  // When it was enqueued, or when the device began it.
  };

  void run();
  void give(std::unique_ptr<Job> job, Stream& stream, DeviceWork& work);
  void look(DeviceWork& work);
  void begin_first();
  void finish_first();
  void rest() const;
  void fail(const std::string& why);

  const std::string name_;  // The name of its thread.
  std::unique_ptr<Device> device_;
  std::shared_ptr<DeviceProgress> devices_;
  DeviceLimits limits_;
  const Pace* pace_;
  std::unique_ptr<MemoryPool> memory_;  // Must outlive the jobs, which hold tensors.
  JobQueue jobs_;
  std::deque<Given> given_;
  Clock::time_point moved_;  // The last time a job was enqueued or seen to finish.
  Clock::time_point done_;   // The last time a job was seen to finish.
  Clock::time_point looked_;
  Clock::duration waited_{};  // The time that the first job has taken since then.
  mutable std::mutex mutex_;
  std::optional<std::string> fault_;
  std::thread thread_;
};

}  // namespace troupe::actors
