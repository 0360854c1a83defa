#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/memory_block.h"

namespace troupe {

class DeviceWork;
class MemoryPool;

/// How far the devices are that use the same memory. When the last handle to a block has gone, a
/// device may be about to read it yet, whoever held that handle: so the block goes out again only
/// when each device has done what it had been given by then. Any thread.
class DeviceProgress {
 public:
  /// Counts what came back.
  using Moment = std::uint64_t;

  /// Something comes back now.
  Moment came_back() { return clock_.fetch_add(1) + 1; }
  /// What came back until then is used by no device any more, except perhaps by that of `mine`.
  /// That one's own thread may use it: what the thread gives to the device is done in order.
  Moment settled(const DeviceWork* mine) const;

 private:
  friend class DeviceWork;
  using Done = std::atomic<Moment>;

  std::atomic<Moment> clock_{0};
  std::atomic<std::uint64_t> jobs_{0};
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Done>> devices_;
};

/// While a thread has one of these, it gives work to a device, job by job. What it takes and gives
/// back within a job nobody else has seen: that it may take again at once.
class DeviceWork {
 public:
  explicit DeviceWork(DeviceProgress& progress);
  /// Where the device has not done all, memory that it may use is never given out again.
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  void begin_job();
  /// The job's device reads or writes it, and the host can too: it is not given back before that is
  /// done.
  void hold(BlockHandle block) { held_now_.push_back(std::move(block)); }
  /// All of the job is given to the device; tells what to say once that has done it.
  DeviceProgress::Moment end_job();
  /// The device has done all that it had been given by then.
  void done(DeviceProgress::Moment moment);
  /// The device has done all that it was given.
  void idle();

  DeviceProgress& progress() { return progress_; }

  /// Null where the thread has none.
  static DeviceWork* of_this_thread();

 private:
  friend class DeviceProgress;
  friend class MemoryPool;

  void give_back_own();

  DeviceProgress& progress_;
  std::shared_ptr<DeviceProgress::Done> done_;
  std::uint64_t job_ = 0;  // 0: between jobs.
  std::map<std::pair<MemoryPool*, std::size_t>, std::vector<MemoryBlock*>> own_;
  std::vector<BlockHandle> held_now_;
  std::deque<std::pair<DeviceProgress::Moment, std::vector<BlockHandle>>> held_;
};

}  // namespace troupe
