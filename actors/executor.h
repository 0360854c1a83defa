#pragma once

#include <chrono>
#include <concepts>
#include <functional>
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

/// Runs all jobs of one device, in the order in which they were posted. Actors post jobs and learn
/// of their end by message; actors never compute and never block.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Returns at once. Callable from any thread.
  virtual void post(std::unique_ptr<Job> job) = 0;
  /// Posts a function as a job.
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

  /// The memory that jobs compute with. It outlives all jobs.
  virtual MemoryPool& memory() = 0;
  /// The host memory for transfers to and from the device. It outlives all jobs.
  virtual MemoryPool& host_memory() { return memory(); }
  /// Returns whether jobs run on a device, which can follow other devices of the process.
  virtual bool has_device() const { return false; }

  /// Returns how long jobs have computed. Waiting for other threads does not count. Only a job
  /// calls it: the difference of two calls is what it computed between them.
  virtual std::chrono::nanoseconds computed();

  /// Returns the failure of its device, after which no job runs any more. Callable from any thread.
  virtual std::optional<std::string> fault() const { return {}; }
};

/// An executor with its own thread, which computes on its share of the CPU cores.
class ComputingThread final : public Executor {
 public:
  /// `pace` may be null; otherwise it must outlive the thread.
  explicit ComputingThread(int threads, const Pace* pace = nullptr, std::string name = "computing");
  /// Finishes all posted jobs.
  ~ComputingThread() override;

  using Executor::post;
  void post(std::unique_ptr<Job> job) override { jobs_.put(std::move(job)); }
  MemoryPool& memory() override { return memory_; }

 private:
  void run(Stream& stream);
  void work_slowly(Job& job, Stream& stream);

  const Pace* pace_;
  MemoryPool memory_;  // Must outlive the jobs, which hold tensors.
  JobQueue jobs_;
  std::thread thread_;
};

/// Calls `then`, on one of their threads, once all executors have finished and freed their jobs.
void finish(const std::vector<Executor*>& executors, std::function<void()> then);

/// Waits until all executors have finished and freed their jobs; returns false if `end` passes
/// first. Jobs use memory of other executors, so call this before any executor is destroyed.
bool finish(const std::vector<Executor*>& executors,
            std::optional<std::chrono::steady_clock::time_point> end = {});

}  // namespace troupe::actors
