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

/// The progress of all devices that share a memory pool. When the last handle to a block
/// goes away, a device may still have work enqueued that reads it. The pool therefore reuses the
/// block only after every device has finished the work enqueued by then. The device that took the
/// block may reuse it earlier: once other devices have finished with it. Any thread may call this.
class DeviceProgress {
 public:
  /// A logical time that counts events on blocks.
  using Moment = std::uint64_t;

  /// Advances the clock by one event and returns the new time.
  Moment now() { return clock_.fetch_add(1) + 1; }
  /// Returns the time up to which all enqueued work is settled, except that of `mine`. Settled work
  /// is done, or will be done before anything that `mine` enqueues from now on.
  Moment settled(const DeviceWork* mine) const;
  /// Returns the time up to which all devices except that of `mine` have finished their work. A
  /// device reports this itself, or the device of `mine` has finished work that follows it.
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

/// A thread's work for one device, which runs its jobs in order. A thread has at most one.
class DeviceWork {
 public:
  explicit DeviceWork(DeviceProgress& progress);
  /// If the device has unfinished work, memory that it may use is never reused.
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  /// Returns a number greater than 0 that no other DeviceWork of this DeviceProgress has.
  std::uint64_t number() const { return device_->number; }

  void begin_job();
  /// Holds a block that the current job uses and that the host can access too, until the device has
  /// done the job.
  void hold(BlockHandle block) { held_now_.push_back(std::move(block)); }
  /// Ends the job, whose work is all enqueued. Returns the time to pass to done() afterwards.
  DeviceProgress::Moment end_job();
  /// Records that the device has finished all work enqueued by `moment`.
  void done(DeviceProgress::Moment moment);
  /// Records that the device has finished all its work and gets no more in this job.
  void idle();
  /// Records that the device has finished all work enqueued so far while the job continues. Not
  /// shown to other devices, since the job may still enqueue addresses that it took earlier.
  void caught_up();
  /// Returns the time up to which the device is known to have finished its work.
  DeviceProgress::Moment reached() const { return std::max(caught_up_, device_->done.load()); }

  /// Records that this device does its next work only after device `other` has finished everything
  /// enqueued by `moment`.
  void follow(std::uint64_t other, DeviceProgress::Moment moment);

  DeviceProgress& progress() const { return progress_; }

  /// Returns the calling thread's DeviceWork, or null if it has none.
  static DeviceWork* of_this_thread();
  /// Records that the calling thread took the address of a block and may enqueue work on it. Does
  /// nothing if the thread has no device.
  static void see(MemoryBlock& block);

 private:
  friend class DeviceProgress;
  using Device = DeviceProgress::Device;
  using Moment = DeviceProgress::Moment;

  /// The part of another device's work that is done before this device's next work.
  struct Followed {
    Moment until = 0;
    Moment since = 0;    // The time when this device was told to follow up to `until`.
    Moment reached = 0;  // The part of `until` that this device's finished work proves.
  };

  void has_done(Moment moment);
  void has_reached(Moment moment);

  DeviceProgress& progress_;
  std::shared_ptr<Device> device_;
  Moment caught_up_ = 0;
  std::map<std::uint64_t, Followed> followed_;  // Keyed by device number.
  std::vector<BlockHandle> held_now_;
  std::deque<std::pair<DeviceProgress::Moment, std::vector<BlockHandle>>> held_;
};

}  // namespace troupe
