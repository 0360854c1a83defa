#include "catch.h"
#include "core/random.h"
#include "ends.h"
#include "transport/channels/shm_slots.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

Tensor numbered(Tensor tensor, float number) {
  std::fill_n(tensor.f32(), tensor.count(), number);
  return tensor;
}

bool is_numbered(const Tensor& tensor, float number) {
  return std::all_of(tensor.f32(), tensor.f32() + tensor.count(),
                     [&](float x) { return x == number; });
}

}  // namespace

TEST_CASE("a lent tensor is not copied on its way through shared memory", "[transport]") {
  std::vector<Tensor> kept;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t) {
    kept.push_back(std::move(parcel.tensors[0]));
  });
  Ends ends(By::shm, {4'000'000, 8}, inbox, back);
  Tensor lent = numbered(ends.sender->lend({1'000, 1'000}, DType::f32), 3);
  REQUIRE(ends.sender->send({}, {&lent, 1}).ok());
  REQUIRE(inbox.wait_for(1));
  CHECK(kept[0].shape() == Shape{1'000, 1'000});
  CHECK(is_numbered(kept[0], 3));
  CHECK(ends.sender->counters().copied == 0);
  CHECK(ends.receiver->counters().copied == 0);
  CHECK(ends.sender_pool.counters().allocations == 0);
  CHECK(ends.receiver_pool.counters().allocations == 0);
  // Both ends see the same memory at two addresses. Only this test writes to it.
  lent.f32()[5] = 7;
  CHECK(kept[0].f32()[5] == 7);
  kept.clear();
}

TEST_CASE("slices of a lent tensor are not copied even if they are sent several times",
          "[transport]") {
  std::vector<Tensor> kept;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t) {
    for (auto& tensor : parcel.tensors) kept.push_back(std::move(tensor));
  });
  Ends ends(By::shm, {4'000'000, 8}, inbox, back);
  Tensor lent = ends.sender->lend({4, 1'024}, DType::f32);
  for (int i = 0; i < 4; ++i) numbered(lent.slice(i, 1), static_cast<float>(i));
  const std::vector<Tensor> parts{lent.slice(1, 2), lent.slice(3, 1), lent};
  REQUIRE(ends.sender->send({}, parts).ok());
  REQUIRE(ends.sender->send({}, {&parts[0], 1}).ok());
  lent = {};
  REQUIRE(inbox.wait_for(2));
  CHECK(ends.sender->counters().copied == 0);
  CHECK(is_numbered(kept[0].slice(1, 1), 2));
  CHECK(is_numbered(kept[1], 3));
  CHECK(is_numbered(kept[2].slice(0, 1), 0));
  CHECK(is_numbered(kept[3].slice(0, 1), 1));
  kept.clear();
}

namespace {

/// A channel through shared memory, and the tensors that its receiver keeps.
struct KeepingChannel {
  std::vector<Tensor> kept;
  Inbox back;
  Inbox inbox{[this](const Parcel& parcel, std::uint64_t) {
    for (auto& tensor : parcel.tensors) kept.push_back(std::move(tensor));
  }};
  Ends ends{By::shm, {4'000'000, 8}, inbox, back};
};

}  // namespace

TEST_CASE("a lent tensor reaches receivers of other channels with one copy for each of them",
          "[transport]") {
  constexpr std::size_t bytes = 4 * 1'024 * sizeof(float);
  KeepingChannel lender, second, third;
  KeepingChannel* const others[] = {&second, &third};
  Tensor lent = lender.ends.sender->lend({4, 1'024}, DType::f32);
  for (int i = 0; i < 4; ++i) numbered(lent.slice(i, 1), static_cast<float>(i));
  for (auto* channel : {&lender, &second, &third}) {
    REQUIRE(channel->ends.sender->send({}, {&lent, 1}).ok());
    REQUIRE(channel->inbox.wait_for(1));
    REQUIRE(channel->kept.size() == 1);
  }
  CHECK(lender.ends.sender->counters().copied == 0);
  for (const auto* channel : others) CHECK(channel->ends.sender->counters().copied == bytes);
  for (const auto* channel : {&lender, &second, &third})
    CHECK(channel->ends.receiver->counters().copied == 0);

  // Only the lender's receiver shares the memory. Only this test writes to it.
  lent.f32()[5] = 7;
  CHECK(lender.kept[0].f32()[5] == 7);
  lent = {};
  lender.kept.clear();
  for (const auto* channel : others)
    for (int i = 0; i < 4; ++i)
      CHECK(is_numbered(channel->kept[0].slice(i, 1), static_cast<float>(i)));
}

TEST_CASE("slots return when the last handle is released, whichever end releases it",
          "[transport]") {
  constexpr std::size_t bytes = 400'000;
  std::vector<Tensor> kept(2);
  std::uint64_t right = 0;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t index) {
    right += is_numbered(parcel.tensors[0], static_cast<float>(index)) ? 1 : 0;
    kept[index % 2] = std::move(parcel.tensors[0]);
  });
  Ends ends(By::shm, {bytes, 1}, inbox, back);
  // Slots for two bounds can be lent. Two are held at the receiver and one here, so a third loan
  // must wait until the receiver releases one.
  for (int i = 0; i < 1'000; ++i) {
    const Tensor lent = numbered(ends.sender->lend({bytes / 4}, DType::f32), static_cast<float>(i));
    REQUIRE(send_in_time(*ends.sender, {}, {&lent, 1}).ok());
  }
  REQUIRE(inbox.wait_for(1'000));
  CHECK(right == 1'000);
  CHECK(ends.sender->counters().bytes == 1'000 * bytes);
  kept.clear();
  // Everything was returned, so both slots can be lent at once.
  std::vector<Tensor> all;
  for (int i = 0; i < 2; ++i) all.push_back(ends.sender->lend({bytes / 4}, DType::f32));
  const auto made = ends.sender_pool.counters().bytes_in_use;
  CHECK(made == 0);
}

TEST_CASE("a receiver that keeps all tensors does not stop the sender", "[transport]") {
  const bool lends = GENERATE(true, false);
  INFO((lends ? "lent" : "not lent"));
  std::vector<Tensor> kept;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t) {
    for (auto& tensor : parcel.tensors) kept.push_back(std::move(tensor));
  });
  constexpr std::uint64_t count = 200;
  {
    Ends ends(By::shm, {1'000'000, 4}, inbox, back);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Shape shape{static_cast<std::int64_t>(1'000 + 997 * i % 60'000)};
      const Tensor tensor = numbered(
          lends ? ends.sender->lend(shape, DType::f32) : Tensor::make(ends.sender_pool, shape),
          static_cast<float>(i));
      REQUIRE(send_in_time(*ends.sender, {}, {&tensor, 1}).ok());
    }
    REQUIRE(inbox.wait_for(count));
    CHECK(ends.receiver->counters().copied > 0);
    CHECK(ends.receiver->counters().copied < ends.receiver->counters().bytes);
    REQUIRE(kept.size() == count);
    for (std::uint64_t i = 0; i < count; ++i) CHECK(is_numbered(kept[i], static_cast<float>(i)));
    kept.clear();
    CHECK(ends.receiver_pool.counters().bytes_in_use == 0);
  }
}

TEST_CASE("a receiver that holds thousands of tensors does not stop the sender", "[transport]") {
  std::vector<Tensor> kept;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t) {
    for (auto& tensor : parcel.tensors) kept.push_back(std::move(tensor));
  });
  Ends ends(By::shm, {4'000'000, 16}, inbox, back);
  constexpr std::uint64_t count = 12'000;  // More than the number of slots.
  for (std::uint64_t i = 0; i < count; ++i) {
    const Tensor tensor = numbered(ends.sender->lend({8}, DType::f32), static_cast<float>(i));
    REQUIRE(send_in_time(*ends.sender, {}, {&tensor, 1}).ok());
  }
  REQUIRE(inbox.wait_for(count));
  CHECK(ends.receiver->counters().copied > 0);
  bool right = true;
  for (std::uint64_t i = 0; i < count; ++i) right &= is_numbered(kept[i], static_cast<float>(i));
  CHECK(right);
  kept.clear();
}

TEST_CASE("lent and held tensors may outlive both ends", "[transport]") {
  std::vector<Tensor> kept;
  Tensor lent;
  {
    Inbox back, inbox([&](const Parcel&parcel, std::uint64_t) {
      kept.push_back(std::move(parcel.tensors[0]));
    });
    Ends ends(By::shm, {1'000'000, 4}, inbox, back);
    lent = numbered(ends.sender->lend({1'000}, DType::f32), 4);
    REQUIRE(ends.sender->send({}, {&lent, 1}).ok());
    REQUIRE(inbox.wait_for(1));
  }
  CHECK(is_numbered(lent, 4));
  CHECK(is_numbered(kept[0], 4));
}

TEST_CASE("free ranges merge after a release in any order", "[transport]") {
  FreeParts parts(1'024, 1'024 + 64'000, 100);
  const RandomKey key{.seed = 3};
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  for (std::uint32_t i = 0; i < 2'000; ++i) {
    const auto words = key.words(i);
    if (words[0] % 2 == 0 && taken.size() < 100) {
      const std::size_t bytes = 64 * (1 + words[1] % 40);
      if (const auto offset = parts.take(bytes)) {
        for (const auto& [other, length] : taken)
          REQUIRE((*offset + bytes <= other || other + length <= *offset));
        taken.emplace_back(*offset, bytes);
      }
    } else if (!taken.empty()) {
      std::swap(taken[words[2] % taken.size()], taken.back());
      parts.give_back(taken.back().first, taken.back().second);
      taken.pop_back();
    }
  }
  for (const auto& [offset, bytes] : taken) parts.give_back(offset, bytes);
  CHECK(parts.take(64'000) == std::optional<std::size_t>(1'024));
}
