#include "core/stream.h"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe {
namespace {

// A futex wake-up costs 25-60 us: longer than most kernels. So helpers spin between kernels of a
// step, and sleep only when training pauses.
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
#endif
}

Stream::Stream(MemoryPool& memory, int threads) : memory_(&memory) {
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

Stream::~Stream() {
  stopping_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void Stream::share(std::int64_t count, Call call, void* body) {
  call_ = call;
  body_ = body;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<std::uint32_t>(helpers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  take_part();
  while (busy_.load(std::memory_order_acquire) != 0) relax();
}

void Stream::take_part() {
  for (std::int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;)
    call_(body_, i);
}

void Stream::help() {
  prepare_computing_thread();
  std::uint32_t seen = 0;
  for (;;) {
    const auto patience = std::chrono::steady_clock::now() + spin_before_sleep;
    for (unsigned spins = 1; generation_.load(std::memory_order_acquire) == seen; ++spins) {
      relax();
      if (spins % 64 == 0 && std::chrono::steady_clock::now() > patience) generation_.wait(seen);
    }
    ++seen;
    if (stopping_) return;
    take_part();
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace troupe
