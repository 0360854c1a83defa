#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/job_queue.h"
#include "actors/pace.h"
#include "core/memory/memory_pool.h"
#include "core/memory/stream.h"

namespace troupe::actors {

/// Where all computing of one device is done, one job after another in the order in which they were
/// posted. Actors post jobs and hear of their end by message: they never compute and never wait.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Any thread; returns at once.
  virtual void post(std::unique_ptr<Job> job) = 0;
  /// A job that is nothing but its work.
  template <std::invocable<Stream&> Work>
  void post(Work work) {
    class Plain final : public Job {
     public:
      explicit Plain(Work work) : work_(std::move(work)) {}
      void work(Stream& stream) override { work_(stream); }

     private:
      Work work_;
    };
    post(std::unique_ptr<Job>(std::make_unique<Plain>(std::move(work))));
  }

  /// What it computes with. Outlives all jobs.
  virtual MemoryPool& memory() = 0;
  /// Likewise: what the host gives to it and gets from it. Where the cores compute, the same.
  virtual MemoryPool& host_memory() { return memory(); }
  /// Whether it gives its jobs to a device, which can follow others of the process.
  virtual bool has_device() const { return false; }

  /// What its device has failed of; then it does no job any more. Any thread.
  virtual std::optional<std::string> fault() const { return {}; }
};

/// A thread of its own that computes on its share of the cores.
class ComputingThread final : public Executor {
 public:
  /// `pace` may be null, and else outlives it.
  explicit ComputingThread(int threads, const Pace* pace = nullptr, const char* name = "computing");
  /// Finishes what was posted.
  ~ComputingThread() override;

  using Executor::post;
  void post(std::unique_ptr<Job> job) override { jobs_.put(std::move(job)); }
  MemoryPool& memory() override { return memory_; }

 private:
  void run(Stream& stream);

  const Pace* pace_;
  MemoryPool memory_;  // Outlives the jobs, which hold tensors.
  JobQueue jobs_;
  std::thread thread_;
};

/// Waits until all have done what was posted to them, and hold nothing of it any more; false where
/// that is not so in time. Jobs of one hold memory of others: this comes before any of them goes.
bool finish(const std::vector<Executor*>& executors,
            std::optional<std::chrono::steady_clock::time_point> end = {});

}  // namespace troupe::actors
