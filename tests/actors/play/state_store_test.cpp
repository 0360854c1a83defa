#include "actors/play/state_store.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "actors/executor.h"
#include "actors/messages.h"
#include "actors/pace.h"
#include "catch.h"
#include "core/memory/memory_pool.h"
#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "core/result.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// A thread whose jobs get no memory before the thread is destroyed.
class LateMemory final : public Executor {
 public:
  explicit LateMemory(std::promise<void>& asked) : asked_(&asked) {}
  ~LateMemory() override {
    is_destroyed_.set_value();
    thread_.reset();
  }

  void post(std::unique_ptr<Job> job) override { thread_->post(std::move(job)); }
  MemoryPool& memory() override {
    if (auto* const asked = std::exchange(asked_, nullptr)) {
      asked->set_value();
      is_destroyed_.get_future().wait();
    }
    return pool_;
  }

 private:
  std::promise<void>* asked_;
  std::promise<void> is_destroyed_;
  std::unique_ptr<ComputingThread> thread_ = std::make_unique<ComputingThread>(1);
  MemoryPool& pool_ = thread_->memory();
};

}  // namespace

TEST_CASE("a state store can be destroyed while it copies a state", "[actors]") {
  MemoryPool sender;
  const Tensor weight = Tensor::make(sender, Shape{64}, DType::f32);
  std::promise<void> copies;
  bool is_kept = false;
  auto store = std::make_unique<StateStore>(std::make_shared<LateMemory>(copies));
  store->put({{1, 0, 7, {{"weight", weight}}, {}, {}}, 0},
             [&](const Result<std::chrono::nanoseconds>&) { is_kept = true; });
  copies.get_future().wait();
  // The pool asserts that all memory of the copy comes back.
  store.reset();
  CHECK_FALSE(is_kept);
}

namespace {

/// Runs each job at once, in the thread that posts it.
class AtOnce final : public Executor {
 public:
  using Executor::post;
  void post(std::unique_ptr<Job> job) override {
    WorkTime worked{Pace::Clock::now(), {}};
    job->work(stream_);
    worked.end = Pace::Clock::now();
    job->done(worked);
  }
  MemoryPool& memory() override { return pool_; }

 private:
  MemoryPool pool_;
  Stream stream_{pool_};
};

}  // namespace

TEST_CASE("a state store drops the states after a step", "[actors]") {
  MemoryPool sender;
  const Tensor weight = Tensor::make(sender, Shape{4}, DType::f32);
  StateStore store(std::make_shared<AtOnce>());
  const auto ignore = [](const Result<std::chrono::nanoseconds>&) {};
  store.put({{1, 0, 5, {{"weight", weight}}, {}, {}}, 0}, ignore);
  store.put({{1, 0, 6, {{"weight", weight}}, {}, {}}, 5}, ignore);
  CHECK(store.kept() == std::vector<KeptStep>{{5, {0}}, {6, {0}}});
  store.drop_after(6);
  CHECK(store.kept().size() == 2);
  store.drop_after(5);
  CHECK(store.find(0, 5));
  CHECK(!store.find(0, 6));
}
