#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/memory/device.h"

namespace troupe {

/// A device whose progress the test controls.
class PlayedQueue {
 public:
  /// Waits until this many marks were made.
  void wait_for_marks(Device::Mark marks) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return marked_ >= marks; });
  }
  /// Waits until the device's thread has polled this many more times.
  void wait_for_looks(std::uint64_t more) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, until = looks_ + more] { return looks_ >= until; });
  }
  Device::Mark marked() const {
    const std::lock_guard lock(mutex_);
    return marked_;
  }
  /// Completes everything up to the mark.
  void pass(Device::Mark mark) {
    const std::lock_guard lock(mutex_);
    passed_ = mark;
  }
  void pass_all() {
    const std::lock_guard lock(mutex_);
    passes_all_ = true;
  }
  void fail(std::string why) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(why);
  }

 private:
  friend class PlayedDevice;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Device::Mark marked_ = 0, passed_ = 0;
  std::uint64_t looks_ = 0;
  bool passes_all_ = false;
  std::optional<std::string> fault_;
};

class PlayedDevice final : public Device {
 public:
  explicit PlayedDevice(std::shared_ptr<PlayedQueue> queue) : queue_(std::move(queue)) {}

  const kernels::DeviceKernels& kernels() const override { std::abort(); }
  void enter() override {}
  void wait() override {}
  Mark mark() override {
    const std::lock_guard lock(queue_->mutex_);
    queue_->changed_.notify_all();
    return ++queue_->marked_;
  }
  Result<Mark> passed() override {
    const std::lock_guard lock(queue_->mutex_);
    ++queue_->looks_;
    queue_->changed_.notify_all();
    if (queue_->fault_) return Error{*queue_->fault_};
    return queue_->passes_all_ ? queue_->marked_ : queue_->passed_;
  }
  Mark follow(Device&, Mark) override { return mark(); }
  void begin_range(const char*) override {}
  void end_range() override {}
  MemoryPlace place() const override { return {}; }
  MemoryPool& host_memory() override { return host_memory_; }
  void copy(const void*, MemoryPlace, void*, std::size_t) override { std::abort(); }

 private:
  MemoryPool host_memory_;
  std::shared_ptr<PlayedQueue> queue_;
};

}  // namespace troupe
