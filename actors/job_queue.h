#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "core/memory/stream.h"

namespace troupe::actors {

/// From when until when an executor was busy with something.
struct WorkTime {
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

/// What an executor does, on its thread. None of this throws.
class Job {
 public:
  virtual ~Job() = default;
  virtual void work(Stream& stream) = 0;
  /// Once the work is done, by a device too, and what it said is said.
  virtual void done(const WorkTime& /*worked*/) {}
  /// In place of that, and perhaps of the work: the device has failed.
  virtual void lost(const std::string& /*why*/) {}
};

/// Jobs on their way to the thread that does them. It has no bound of its own: each actor knows how
/// many of its jobs there are, and posts no more.
class JobQueue {
 public:
  /// Any thread. Null tells the other end that nothing comes any more.
  void put(std::unique_ptr<Job> job);

  // By the thread that does them alone.

  /// Whether there is one.
  bool has_one() const { return posted_.load(std::memory_order_acquire) != taken_; }
  /// Returns when there is one.
  void wait();
  /// Only where there is one.
  std::unique_ptr<Job> take();

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<Job>> jobs_;
  std::atomic<std::uint32_t> posted_{0};
  std::uint32_t taken_ = 0;
  std::atomic<bool> asleep_{false};
};

}  // namespace troupe::actors
