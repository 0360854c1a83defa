#include "actors/play/state_store.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "actors/executor.h"
#include "actors/messages.h"
#include "catch.h"
#include "core/memory/memory_pool.h"
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
