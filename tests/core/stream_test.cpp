#include "core/memory/stream.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "catch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace troupe;

namespace {

/// Makes this thread flush denormal results to zero, as libraries built with -ffast-math do.
void flush_denormal_results() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8000);
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | std::uint64_t{1} << 24));
#endif
}

std::uint32_t bits_of_half(const volatile float& x) { return std::bit_cast<std::uint32_t>(x / 2); }

}  // namespace

TEST_CASE("a computing thread keeps denormal numbers", "[core]") {
  const volatile float smallest_normal = 0x1p-126f;
  flush_denormal_results();
  CHECK(bits_of_half(smallest_normal) == 0);
  prepare_computing_thread();
  CHECK(bits_of_half(smallest_normal) == 0x00400000);
}

TEST_CASE("for_each calls its body once for each index, with any number of threads", "[core]") {
  MemoryPool memory;
  for (int threads : {1, 2, 5}) {
    Stream stream(memory, threads);
    CHECK(stream.threads() == threads);
    for (int count : {0, 1, 2, 7, 1'000}) {
      std::vector<int> calls(static_cast<std::size_t>(count));
      for (int round = 0; round < 20; ++round)
        stream.for_each(count, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
      CHECK(calls == std::vector<int>(static_cast<std::size_t>(count), 20));
    }
  }
}

TEST_CASE("for_each is correct in consecutive jobs with late helper threads", "[core]") {
  MemoryPool memory;
  // With more helpers than cores, most helpers come late.
  Stream stream(memory, 9);
  for (std::int64_t round = 0; round < 20'000; ++round) {
    const std::int64_t count = 2 + round % 5;
    std::atomic<std::int64_t> sum = 0;
    stream.for_each(count, [&](std::int64_t i) { sum += i + round; });
    REQUIRE(sum == count * (count - 1) / 2 + count * round);
  }
}

TEST_CASE("a stream on the cores returns tensors without copies", "[core]") {
  MemoryPool memory;
  Stream stream(memory);
  const Tensor x = stream.make({3});
  CHECK(x.place().is_host());
  CHECK(&stream.host_memory() == &memory);
  CHECK(stream.to_here(x).raw() == x.raw());
  CHECK(stream.to_host(x).raw() == x.raw());
  CHECK(stream.to_here({}).empty());
}
