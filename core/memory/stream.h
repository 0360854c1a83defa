#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/memory_pool.h"
#include "core/memory/steady_memory.h"
#include "core/memory/tensor.h"

namespace troupe {

/// A device's work in order: kernels that are enqueued first are done first. On a CPU a kernel is
/// done when it returns, and the stream is the device's share of the cores: the calling thread, and
/// helper threads that join in for_each(). One thread uses a stream at a time.
class Stream {
 public:
  explicit Stream(MemoryPool& memory, int threads = 1);
  /// A stream whose kernels run on `device` and use its memory.
  Stream(MemoryPool& memory, Device& device) : memory_(&memory), device_(&device) {}
  /// Returns a stream that allocates memory as usual and skips the work: for_each() calls nothing.
  /// The numbers stay uninitialized. A rehearsal shows how much memory a run needs.
  static Stream rehearsal(MemoryPool& memory) { return Stream(memory, Work::left_out); }
  /// Returns a rehearsal for a device: its kernels are called and allocate memory. It holds only
  /// what it must, and nothing for speed alone, as if the device were full.
  static Stream rehearsal(MemoryPool& memory, Device& device) {
    return Stream(memory, Work::left_out, &device);
  }
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  MemoryPool& memory() { return *memory_; }
  /// Returns a stream on which the cores work for the device, with host memory.
  Stream of_cores() { return Stream(host_memory(), work_); }
  /// Memory for numbers that the host reads or writes. On the cores it is memory().
  MemoryPool& host_memory() { return device_ ? device_->host_memory() : *memory_; }
  MemoryPlace place() const { return memory_->place(); }
  int threads() const { return static_cast<int>(helpers_.size()) + 1; }
  /// Null if the cores compute.
  Device* device() const { return device_; }

  /// Returns when all enqueued work is done.
  void wait() {
    if (device_) device_->wait();
  }

  /// While a Lasting lives, the stream's allocations are marked as held from step to step.
  class Lasting {
   public:
    explicit Lasting(Stream& stream)
        : stream_(stream), before_(std::exchange(stream.lifetime_, Lifetime::lasting)) {}
    ~Lasting() { stream_.lifetime_ = before_; }
    Lasting(const Lasting&) = delete;
    Lasting& operator=(const Lasting&) = delete;

   private:
    Stream& stream_;
    Lifetime before_;
  };

  Tensor make(const Shape& shape, DType type = DType::f32) {
    const auto bytes = static_cast<std::size_t>(shape.count()) * bytes_of(type);
    return Tensor::over(take(bytes), 0, shape, type);
  }

  /// Copies all numbers, in order with the other work. Both tensors have the same size, and each
  /// lies with the host or where the stream's kernels compute; `from` may lie with another device.
  void copy(const Tensor& from, Tensor& to);
  /// Returns a tensor that the stream's kernels can read: the tensor itself or a copy.
  Tensor to_here(Tensor tensor);
  /// Returns a tensor that the host can read once the stream's work is done: the tensor itself or a
  /// copy.
  Tensor to_host(Tensor tensor);

  /// Calls body(i) once for each i in [0, count), on any thread and in any order, and returns when
  /// all calls are done. A caller must not split its work by threads(), so that results do not
  /// depend on it. A body must not call it, and a stream with a device must not either.
  template <class Body>
  void for_each(std::int64_t count, Body&& body) {
    if (work_ == Work::left_out) return;
    assert(!device_ && "what the cores do for a device is done on a stream of theirs");
    if (count <= 1 || helpers_.empty()) {
      for (std::int64_t i = 0; i < count; ++i) body(i);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    share(
        count, [](void* self, std::int64_t i) { (*static_cast<Plain*>(self))(i); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  friend class SteadyMemory;
  enum class Work : std::uint8_t { done, left_out };
  Stream(MemoryPool& memory, Work work, Device* device = nullptr)
      : memory_(&memory), device_(device), was_full_(work == Work::left_out), work_(work) {}

  BlockHandle take(std::size_t bytes);

  using Call = void (*)(void*, std::int64_t);
  void share(std::int64_t count, Call call, void* body);
  void take_part();
  void help();

  MemoryPool* memory_;
  Device* device_ = nullptr;
  SteadyMemory::Turn* turn_ = nullptr;  // The turn in progress.
  std::vector<std::weak_ptr<SteadyMemory::Kept>> kept_;
  bool was_full_ = false;
  Lifetime lifetime_ = Lifetime::passing;
  Work work_ = Work::done;
  std::vector<std::thread> helpers_;

  // The shared job. The upper half of `ticket_` numbers the job; the lower half is the next index.
  // A thread claims an index by incrementing `ticket_`. While the job's members change, the lower
  // half is `changing`. A late helper then claims nothing, and nobody ever waits for a helper
  // without a claim.
  static constexpr std::uint64_t one_job = std::uint64_t{1} << 32;
  static constexpr std::uint64_t changing = one_job - 1;
  std::atomic<std::uint64_t> ticket_{changing};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> body_{nullptr};
  std::atomic<std::int64_t> count_{0};
  std::atomic<std::int64_t> done_{0};
  std::atomic<std::uint32_t> jobs_{0};  // Sleeping helpers wait for it to change.
  std::atomic<bool> stopping_{false};
};

/// Prepares a thread that computes. Denormal numbers are kept, so that all threads compute the same
/// bits.
void prepare_computing_thread();

}  // namespace troupe
