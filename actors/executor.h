#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "actors/pace.h"
#include "core/memory_pool.h"
#include "core/stream.h"

namespace troupe::actors {

/// Where all computing of one device is done, one job after another in the order in which they were
/// posted. Actors post jobs and hear of their end by message: they never compute and never wait.
class Executor {
 public:
  /// Must not throw.
  using Job = std::function<void(Stream&)>;

  virtual ~Executor() = default;

  /// Any thread; returns at once.
  virtual void post(Job job) = 0;
  /// What it computes with. Outlives all jobs.
  virtual MemoryPool& memory() = 0;
  /// Likewise: what the host gives to it and gets from it. Where the cores compute, the same.
  virtual MemoryPool& host_memory() { return memory(); }
};

/// A thread of its own that computes on its share of the cores.
class ComputingThread final : public Executor {
 public:
  /// `pace` may be null, and else outlives it.
  explicit ComputingThread(int threads, const Pace* pace = nullptr, const char* name = "computing");
  /// One that gives the work to a device, whose memory comes from `memory`.
  ComputingThread(std::unique_ptr<Device> device, std::unique_ptr<MemorySource> memory,
                  const Pace* pace = nullptr);
  /// Finishes what was posted.
  ~ComputingThread() override;

  void post(Job job) override;
  MemoryPool& memory() override { return memory_; }
  MemoryPool& host_memory() override { return device_ ? device_->host_memory() : memory_; }

 private:
  void run(Stream& stream, LateReturns* late);
  Job next();

  const Pace* pace_;
  std::unique_ptr<Device> device_;  // Null: the cores compute.
  MemoryPool memory_;               // Outlives the jobs, which hold tensors.
  std::mutex mutex_;
  std::deque<Job> jobs_;
  std::atomic<std::uint32_t> posted_{0};
  std::atomic<bool> asleep_{false};
  std::thread thread_;
};

/// Waits until all have done what was posted to them, and hold nothing of it any more; false where
/// that is not so in time. Jobs of one hold memory of others: this comes before any of them goes.
bool finish(const std::vector<Executor*>& executors,
            std::optional<std::chrono::steady_clock::time_point> end = {});

}  // namespace troupe::actors
