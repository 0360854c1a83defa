#include "core/memory/stream.h"

#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe {
namespace {

// A futex wake-up costs 25-60 us, longer than most kernels. So helpers spin between the kernels of
// a step and sleep only when training pauses.
constexpr auto spin_before_sleep = std::chrono::microseconds(200);

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void prepare_computing_thread() {
#if defined(__x86_64__)
  constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
  _mm_setcsr(_mm_getcsr() & ~(flush_to_zero | denormals_are_zero));
#elif defined(__aarch64__)
  // The bits FZ and FIZ of the floating-point control register.
  constexpr std::uint64_t flush_to_zero = 1u << 24, denormals_are_zero = 1u << 0;
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control & ~(flush_to_zero | denormals_are_zero)));
#endif
}

Stream::Stream(MemoryPool& memory, int threads) : memory_(&memory) {
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

Stream::~Stream() {
  stopping_ = true;
  jobs_.fetch_add(1);
  jobs_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

/// Allocates a block. If the device is full, drops the memory kept for speed alone and waits until
/// the device is done, so that all returned blocks can be released for blocks of other sizes.
BlockHandle Stream::take(std::size_t bytes) {
  try {
    return turn_ ? turn_->take(bytes) : memory_->take(bytes, lifetime_);
  } catch (const OutOfMemory&) {
    if (!device_) throw;
  }
  was_full_ = true;
  if (turn_) turn_->give_up();
  for (const auto& known : kept_)
    if (const auto kept = known.lock()) *kept = {};
  wait();
  if (auto* work = DeviceWork::of_this_thread()) work->caught_up();
  return memory_->take(bytes, lifetime_);
}

void Stream::copy(const Tensor& from, Tensor& to) {
  assert(from.bytes() == to.bytes());
  if (work_ == Work::left_out) return;
  if (!device_) {
    const auto bytes = from.host_bytes();
    if (!bytes.empty()) std::memcpy(to.host_bytes().data(), bytes.data(), bytes.size());
    return;
  }
  device_->copy(from.raw(), from.place(), to.raw(), from.bytes());
  // The device copies later. Until then memory that is not its own must not be reused.
  auto* work = DeviceWork::of_this_thread();
  for (const auto* tensor : {&from, &std::as_const(to)})
    if (tensor->place() != place()) work ? work->hold(tensor->holding()) : wait();
}

Tensor Stream::to_here(Tensor tensor) {
  if (tensor.empty() || tensor.place() == place()) return tensor;
  Tensor copied = make(tensor.shape(), tensor.dtype());
  copy(tensor, copied);
  return copied;
}

Tensor Stream::to_host(Tensor tensor) {
  if (tensor.empty() || tensor.place().is_host()) return tensor;
  Tensor copied = Tensor::make(host_memory(), tensor.shape(), tensor.dtype());
  copy(tensor, copied);
  return copied;
}

void Stream::share(std::int64_t count, Call call, void* body) {
  assert(count < static_cast<std::int64_t>(changing));
  const std::uint64_t job = (ticket_.load(std::memory_order_relaxed) & ~changing) + one_job;
  ticket_.store(job | changing);
  call_.store(call, std::memory_order_release);
  body_.store(body, std::memory_order_release);
  count_.store(count, std::memory_order_release);
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(job, std::memory_order_release);
  jobs_.fetch_add(1, std::memory_order_release);
  jobs_.notify_all();
  take_part();
  // Helpers work on the rest. Yield now and then: with fewer cores than threads they need ours.
  for (unsigned spins = 1; done_.load(std::memory_order_acquire) != count; ++spins)
    spins % 1024 == 0 ? std::this_thread::yield() : relax();
}

void Stream::take_part() {
  for (auto ticket = ticket_.load(std::memory_order_acquire);;) {
    const auto i = static_cast<std::int64_t>(ticket & changing);
    const Call call = call_.load(std::memory_order_acquire);
    void* const body = body_.load(std::memory_order_acquire);
    if (i == static_cast<std::int64_t>(changing) || i >= count_.load(std::memory_order_acquire))
      return;
    // Succeeds only if the job has not changed since its members were read.
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    call(body, i);
    done_.fetch_add(1, std::memory_order_release);
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void Stream::help() {
  prepare_computing_thread();
  std::uint32_t seen = 0;
  for (;;) {
    const auto patience = std::chrono::steady_clock::now() + spin_before_sleep;
    for (unsigned spins = 1; jobs_.load(std::memory_order_acquire) == seen; ++spins) {
      relax();
      if (spins % 64 == 0 && std::chrono::steady_clock::now() > patience) jobs_.wait(seen);
    }
    seen = jobs_.load(std::memory_order_acquire);
    if (stopping_) return;
    take_part();
  }
}

}  // namespace troupe
