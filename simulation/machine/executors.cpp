#include "simulation/machine/executors.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/deferred_sends.h"
#include "core/memory/stream.h"

namespace troupe::simulation {

class SimulatedExecutors::Cores final : public actors::Executor {
 public:
  Cores(Scheduler& scheduler, ProcessId process, const std::string& name,
        const ExecutorTimes& times, std::shared_ptr<std::size_t> open)
      : scheduler_(scheduler),
        times_(times),
        is_device_(name == "computing" || name.starts_with(actors::device_thread_prefix)),
        open_(std::move(open)),
        // A thread for all: helpers of a stream change no result.
        stream_(memory_),
        queue_(scheduler.add_queue(process, name)) {
    ++*open_;
    prepare_computing_thread();
  }
  ~Cores() override {
    scheduler_.remove(queue_);
    --*open_;
  }
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  using Executor::post;
  /// A job is two tasks, which no other task of the queue comes between.
  void post(std::unique_ptr<actors::Job> job) override {
    const auto doing = std::make_shared<Doing>();
    doing->job = std::move(job);
    scheduler_.post(queue_, [this, doing] { compute(*doing); });
    scheduler_.post(queue_, [this, doing] { tell(*doing); });
  }
  MemoryPool& memory() override { return memory_; }
  std::optional<std::string> fault() const override { return fault_; }
  std::chrono::nanoseconds computed() override {
    return computed_ += scheduler_.draw_time(times_.least, times_.most);
  }

 private:
  struct Doing {
    std::unique_ptr<actors::Job> job;
    actors::WorkTime worked;
    std::vector<actors::DeferredSends::Saying> said;
  };

  void compute(Doing& doing) {
    if (!fault_ && is_device_) fault_ = times_.fault;
    if (fault_) return;
    const auto time = scheduler_.draw_time(times_.least, times_.most);
    doing.worked = {scheduler_.now(), scheduler_.now() + time};
    scheduler_.stall(time);
    actors::DeferredSends withheld;
    doing.job->work(stream_);
    doing.said = withheld.take();
    withheld.hand_over({});
  }

  void tell(Doing& doing) {
    if (fault_) {
      doing.job->lost(*fault_);
      doing.job = nullptr;
      return;
    }
    for (const auto& say : std::exchange(doing.said, {})) say();
    doing.job->done(doing.worked);
    doing.job = nullptr;
  }

  Scheduler& scheduler_;
  const ExecutorTimes& times_;
  const bool is_device_;  // Others only read and keep.
  const std::shared_ptr<std::size_t> open_;
  MemoryPool memory_;  // Must outlive the jobs, which hold tensors.
  Stream stream_;
  QueueId queue_;
  std::chrono::nanoseconds computed_{0};
  std::optional<std::string> fault_;
};

/// An executor whose device is not there. Its jobs are lost.
class SimulatedExecutors::NoDevice final : public actors::Executor {
 public:
  NoDevice(Scheduler& scheduler, ProcessId process, std::shared_ptr<std::size_t> open)
      : scheduler_(scheduler),
        open_(std::move(open)),
        queue_(scheduler.add_queue(process, "device")) {
    ++*open_;
  }
  ~NoDevice() override {
    scheduler_.remove(queue_);
    --*open_;
  }
  NoDevice(const NoDevice&) = delete;
  NoDevice& operator=(const NoDevice&) = delete;

  using Executor::post;
  void post(std::unique_ptr<actors::Job> job) override {
    scheduler_.post(queue_, [job = std::shared_ptr(std::move(job))] { job->lost(why); });
  }
  MemoryPool& memory() override { return memory_; }
  bool has_device() const override { return true; }
  std::optional<std::string> fault() const override { return why; }

 private:
  static constexpr const char* why = "a simulated machine has no devices";

  Scheduler& scheduler_;
  const std::shared_ptr<std::size_t> open_;
  MemoryPool memory_;
  QueueId queue_;
};

std::unique_ptr<actors::Executor> SimulatedExecutors::open(const actors::OnCores& order) {
  return std::make_unique<Cores>(scheduler_, process_, order.name, times_, open_);
}

std::unique_ptr<actors::Executor> SimulatedExecutors::open(actors::OnDevice) {
  return std::make_unique<NoDevice>(scheduler_, process_, open_);
}

}  // namespace troupe::simulation
