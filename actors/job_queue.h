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

/// The time during which an executor worked on a job.
struct WorkTime {
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

/// A unit of work of an executor, called on its thread. No member may throw.
class Job {
 public:
  virtual ~Job() = default;
  virtual void work(Stream& stream) = 0;
  /// Called when the work is done, by the device too, and after its messages were sent.
  virtual void done(const WorkTime& /*worked*/) {}
  /// Called instead of done(), and perhaps of work(), if the device has failed.
  virtual void lost(const std::string& /*why*/) {}
};

/// The queue of jobs for one executor thread. It is unbounded: each actor limits the number of its
/// jobs.
class JobQueue {
 public:
  /// Appends a job, from any thread. Null ends the queue.
  void put(std::unique_ptr<Job> job);

  // The functions below are for the executor's thread only.

  bool has_one() const { return posted_.load(std::memory_order_acquire) != taken_; }
  /// Blocks until there is a job.
  void wait();
  /// Removes the first job; there must be one.
  std::unique_ptr<Job> take();

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<Job>> jobs_;
  std::atomic<std::uint32_t> posted_{0};
  std::uint32_t taken_ = 0;
  std::atomic<bool> asleep_{false};
};

}  // namespace troupe::actors
