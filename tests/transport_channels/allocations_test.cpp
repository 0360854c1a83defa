#include "transport/allocations.h"

#include <array>
#include <atomic>

#include "catch.h"
#include "ends.h"

using namespace troupe;
using namespace troupe::transport;

TEST_CASE("a channel allocates nothing in steady state", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_without_checksums, By::tcp_sealed);
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
    return comes_true([&] { return arrived >= sent; });
  };
  bool all_sent = true;
  // The needed memory depends on how threads take turns, so a few steps may allocate. A channel
  // that allocates for each parcel never has a hundred steps without an allocation.
  const auto made = [&] {
    return Allocations::of_process() + ends.sender_pool.counters().allocations +
           ends.receiver_pool.counters().allocations;
  };
  CHECK(comes_true([&] {
    const auto before = made();
    for (int i = 0; i < 100; ++i) all_sent &= step();
    return made() == before;
  }));
  CHECK(all_sent);
}
