#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "catch.h"
#include "ends.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace troupe;
using namespace troupe::transport;

TEST_CASE("a channel allocates nothing in steady state", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_without_checksums);
  INFO(to_string(by));
  std::atomic<std::uint64_t> arrived{0};
  Inbox back, inbox([&](const Parcel&, std::uint64_t) { ++arrived; });
  Ends ends(by, {10'000'000, 16}, inbox, back);
  const std::vector<std::byte> head(100);
  std::uint64_t sent = 0;
  // An activation that was lent, one that was not, and a stage's gradients.
  const auto step = [&] {
    std::array<Tensor, 40> gradients;
    const Tensor lent = ends.sender->lend({300, 100}, DType::f32);
    const Tensor made = Tensor::make(ends.sender_pool, {200, 100});
    for (auto& gradient : gradients) gradient = Tensor::make(ends.sender_pool, {50, 10});
    for (const auto tensors : {std::span(&lent, 1), std::span(&made, 1),
                               std::span<const Tensor>(gradients), std::span<const Tensor>()}) {
      if (!ends.sender->send(head, tensors).ok()) return false;
      ++sent;
    }
    while (arrived < sent) std::this_thread::yield();
    return true;
  };
  bool all_sent = true;
  // What is under way at once differs from step to step, so it takes some to have seen the most.
  for (int i = 0; i < 300; ++i) all_sent &= step();
  const auto before = allocations.load();
  const auto pools_before =
      ends.sender_pool.counters().allocations + ends.receiver_pool.counters().allocations;
  for (int i = 0; i < 500; ++i) all_sent &= step();
  const auto after = allocations.load();
  const auto pools_after =
      ends.sender_pool.counters().allocations + ends.receiver_pool.counters().allocations;
  CHECK(all_sent);
  CHECK(after - before == 0);
  CHECK(pools_after - pools_before == 0);
}
