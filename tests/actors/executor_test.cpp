#include "actors/executor.h"

#include <chrono>
#include <future>
#include <memory>

#include "actors/deferred_sends.h"
#include "actors/executors.h"
#include "catch.h"
#include "core/memory/tensor.h"

using namespace troupe;
using namespace troupe::actors;

TEST_CASE("finish waits for all jobs and frees their memory", "[actors]") {
  ComputingThread first(1), second(1);
  // The second executor is slow and holds a tensor of the first.
  std::promise<void> may_end;
  first.post([&, ends = may_end.get_future().share()](Stream& stream) {
    const Tensor made = Tensor::make(stream.memory(), Shape{64}, DType::f32);
    second.post([made, ends](Stream&) { ends.wait(); });
  });
  CHECK(finish({&first}));
  CHECK(first.memory().counters().bytes_in_use > 0);
  const auto now = std::chrono::steady_clock::now();
  CHECK_FALSE(finish({&first, &second}, now));
  may_end.set_value();
  CHECK(finish({&first, &second}));
  CHECK(first.memory().counters().bytes_in_use == 0);
}

TEST_CASE("nobody waits for an executor that runs no job any more", "[actors]") {
  class Ended final : public Executor {
   public:
    void post(std::unique_ptr<Job> job) override { job.reset(); }
    MemoryPool& memory() override { return memory_; }

   private:
    MemoryPool memory_;
  };
  Ended ended;
  CHECK(finish({&ended}));
  bool is_finished = false;
  finish({&ended}, [&] { is_finished = true; });
  CHECK(is_finished);
}

TEST_CASE("the real executors have the threads that the order names", "[actors]") {
  const auto executor = RealExecutors().open(OnCores{.threads = 3});
  std::promise<int> threads;
  executor->post([&](Stream& stream) { threads.set_value(stream.threads()); });
  CHECK(threads.get_future().get() == 3);
}

TEST_CASE("a lowered pace lengthens a job, and its messages wait for its end", "[actors]") {
  using Clock = Pace::Clock;
  class Timed final : public Job {
   public:
    explicit Timed(std::promise<WorkTime>& worked) : worked_(&worked) {}
    void work(Stream&) override {
      const auto end = Clock::now() + std::chrono::milliseconds(2);
      while (Clock::now() < end) {
      }
      once_done([this] { said_ = Clock::now(); });
    }
    void done(const WorkTime& worked) override { worked_->set_value({said_, worked.end}); }

   private:
    std::promise<WorkTime>* worked_;
    Clock::time_point said_;
  };
  Pace pace;
  pace.slow_down(3, std::chrono::hours(1));
  std::promise<WorkTime> worked;
  const auto before = Clock::now();
  ComputingThread executor(1, &pace);
  executor.post(std::make_unique<Timed>(worked));
  const auto [said, end] = worked.get_future().get();
  CHECK(said - before >= std::chrono::milliseconds(6));
  CHECK(end - before >= std::chrono::milliseconds(6));
}
