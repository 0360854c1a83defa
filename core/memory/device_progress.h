#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/memory/memory_block.h"

namespace troupe {

class DeviceWork;

/// How far the devices are that use the same memory. When the last handle to a block has gone, a
/// device may be about to read it yet, whoever held that handle. So the block goes out again only
/// when each device has done what it had been given by then; to the device that had it, when others
/// have done what works on it. Any thread.
class DeviceProgress {
 public:
  /// Counts what happens to blocks.
  using Moment = std::uint64_t;

  /// Something happens now.
  Moment now() { return clock_.fetch_add(1) + 1; }
  /// What had been given to devices until then, that of `mine` excepted, is done, or is done before
  /// anything that `mine` gives to its own from now on.
  Moment settled(const DeviceWork* mine) const;
  /// What had been given to all devices but that of `mine` until then is done: by what they say
  /// themselves, or what that of `mine` has done follows it.
  Moment done_by_others(const DeviceWork& mine) const;

 private:
  friend class DeviceWork;
  struct Device {
    std::uint64_t number = 0;
    std::atomic<Moment> done;
  };

  std::atomic<Moment> clock_{0};
  mutable std::mutex mutex_;
  std::uint64_t numbers_ = 0;
  std::vector<std::shared_ptr<Device>> devices_;
};

/// While a thread has one of these, it gives work to a device, job by job, and the device does it
/// in order.
class DeviceWork {
 public:
  explicit DeviceWork(DeviceProgress& progress);
  /// Where the device has not done all, memory that it may use is never given out again.
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  /// Greater than 0, and no other's.
  std::uint64_t number() const { return device_->number; }

  void begin_job();
  /// The job's device reads or writes it, and the host can too: it is not given back before that is
  /// done.
  void hold(BlockHandle block) { held_now_.push_back(std::move(block)); }
  /// All of the job is given to the device; tells what to say once that has done it.
  DeviceProgress::Moment end_job();
  /// The device has done all that it had been given by then.
  void done(DeviceProgress::Moment moment);
  /// The device has done all that it was given, and is given no more in this job.
  void idle();
  /// The device has done all that it was given by now; the job goes on. Others do not hear of it:
  /// whose address the job has taken by now it may give to the device later.
  void caught_up();
  /// Until when, as it is known.
  DeviceProgress::Moment reached() const { return std::max(caught_up_, device_->done.load()); }

  /// What the device is given from now on comes after what that of the work with this number had
  /// been given by then.
  void follow(std::uint64_t other, DeviceProgress::Moment moment);

  DeviceProgress& progress() const { return progress_; }

  /// Null where the thread has none.
  static DeviceWork* of_this_thread();
  /// Whoever takes the address of a block may be about to give it to a device, if his thread has
  /// one.
  static void see(MemoryBlock& block);

 private:
  friend class DeviceProgress;
  using Device = DeviceProgress::Device;
  using Moment = DeviceProgress::Moment;

  /// How far another device's work is done before what this one is given from now on.
  struct Followed {
    Moment until = 0;
    Moment since = 0;    // When this device was told to follow it so far.
    Moment reached = 0;  // As far as this device has followed it by what it has done.
  };

  void has_done(Moment moment);
  void has_reached(Moment moment);

  DeviceProgress& progress_;
  std::shared_ptr<Device> device_;
  Moment caught_up_ = 0;
  std::map<std::uint64_t, Followed> followed_;  // By number.
  std::vector<BlockHandle> held_now_;
  std::deque<std::pair<DeviceProgress::Moment, std::vector<BlockHandle>>> held_;
};

}  // namespace troupe
