#include <cstring>
#include <thread>

#include "catch.h"
#include "ends.h"
#include "made_parcel.h"
#include "peer.h"
#include "peer_order.h"

using namespace troupe;
using namespace troupe::transport;

TEST_CASE("parcels arrive in order and unchanged", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_without_checksums, By::tcp_sealed);
  INFO(to_string(by));
  constexpr ParcelSizes sizes;
  constexpr std::uint64_t count = 3000;
  std::string wrong;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t index) {
    if (wrong.empty()) wrong = difference(parcel, 1, index, sizes);
  });
  {
    Ends ends(by, {1'000'000, 32}, inbox, back);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto parcel = made_parcel(1, i, sizes, *ends.sender, ends.sender_pool);
      const auto sent = send_in_time(*ends.sender, parcel.head, parcel.tensors);
      REQUIRE(sent.ok());
    }
    REQUIRE(inbox.wait_for(count));
    REQUIRE(ends.sender->close(wait_limit).ok());
    CHECK(ends.sender->counters().parcels == count);
    CHECK(ends.receiver->counters().bytes == ends.sender->counters().bytes);
    const auto end = inbox.wait_for_end();
    REQUIRE(end);
    CHECK(end->why == ChannelEnd::Why::closed);
  }
  CHECK(wrong == "");
  CHECK(inbox.parcels() == count);
}

TEST_CASE("parcels of several threads arrive once, each thread's in its order", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  constexpr std::uint32_t threads = 4, count = 1000;
  std::array<std::uint32_t, threads> next{};
  bool in_order = true;
  Inbox back, inbox([&](const Parcel&parcel, std::uint64_t) {
    std::uint32_t words[2];
    std::memcpy(words, parcel.head.data(), sizeof words);
    const auto* numbers = parcel.tensors[0].data<std::int32_t>();
    in_order &= next[words[0]]++ == words[1] && numbers[0] == static_cast<std::int32_t>(words[1]);
    in_order &= numbers[4999] == static_cast<std::int32_t>(words[0]);
  });
  Ends ends(by, {3'000'000, 40}, inbox, back);
  std::vector<std::thread> senders;
  for (std::uint32_t t = 0; t < threads; ++t)
    senders.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < count; ++i) {
        Tensor tensor = i % 2 == 0 ? ends.sender->lend({5000}, DType::i32)
                                   : Tensor::make(ends.sender_pool, {5000}, DType::i32);
        tensor.data<std::int32_t>()[0] = static_cast<std::int32_t>(i);
        tensor.data<std::int32_t>()[4999] = static_cast<std::int32_t>(t);
        const std::uint32_t words[2] = {t, i};
        (void)send_in_time(*ends.sender, std::as_bytes(std::span(words)), {&tensor, 1}).ok();
      }
    });
  for (auto& sender : senders) sender.join();
  CHECK(inbox.wait_for(threads * count));
  CHECK(in_order);
}

TEST_CASE("parcels from another process arrive unchanged", "[transport]") {
  const std::string by = GENERATE("shm", "tcp");
  INFO(by);
  constexpr std::uint64_t count = 3000;
  std::string wrong;
  Inbox inbox([&](const Parcel& parcel, std::uint64_t index) {
    if (wrong.empty()) wrong = difference(parcel, 5, index, peer_sizes);
  });
  MemoryPool pool;
  {
    const OwnThread thread = std::make_unique<ChannelThread>();
    const DoorOrder order{peer_epoch};
    auto door = by == "shm" ? open_shm_door(*thread, order).value()
                            : open_tcp_door(*thread, "127.0.0.1:0", order).value();
    const auto receiver = door->expect(peer_token, {peer_bound, &pool, inbox.listener()});
    Peer peer({"send", by, door->address(), std::to_string(count), "5"});
    CHECK(inbox.wait_for(count));
    CHECK(peer.line() == "sent");
    CHECK(peer.exit_status() == 0);
    const auto end = inbox.wait_for_end();
    REQUIRE(end);
    CHECK(end->why == ChannelEnd::Why::closed);
  }
  CHECK(wrong == "");
}

TEST_CASE("parcels arrive unchanged in another process", "[transport]") {
  const std::string by = GENERATE("shm", "tcp");
  INFO(by);
  constexpr std::uint64_t count = 3000;
  MemoryPool pool;
  const OwnThread thread = std::make_unique<ChannelThread>();
  Peer peer({"receive", by, std::to_string(count), "6"});
  const auto address = peer.line();
  const Sending sending{peer_epoch, peer_token, peer_bound, &pool, {}};
  auto sender =
      by == "shm" ? connect_shm(*thread, address, sending) : connect_tcp(*thread, address, sending);
  REQUIRE(sender.ok());
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto parcel = made_parcel(6, i, peer_sizes, **sender, pool);
    const auto sent = send_in_time(**sender, parcel.head, parcel.tensors);
    REQUIRE(sent.ok());
  }
  CHECK((*sender)->close(wait_limit).ok());
  CHECK(peer.line() == "received");
  CHECK(peer.line() == "ended: the channel was closed by its sender");
  CHECK(peer.exit_status() == 0);
}

TEST_CASE("a listener that sends is not called within its own call", "[transport]") {
  MemoryPool pool;
  std::vector<std::size_t> heads;
  std::unique_ptr<Sender> sender;
  Listener listener;
  listener.on_parcel = [&](const Parcel& parcel) {
    const auto bytes = parcel.head.size();
    if (bytes < 4) {
      const std::vector<std::byte> longer(bytes + 1);
      CHECK(sender->send(longer, {}).ok());
    }
    heads.push_back(bytes);
  };
  auto channel = make_local_channel(pool, {0, 2}, listener, {});
  sender = std::move(channel.sender);
  CHECK(sender->send({}, {}).ok());
  CHECK(heads == std::vector<std::size_t>{0, 1, 2, 3, 4});
}
