#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "tests/transport/network_under_test.h"

/// Checks what doors and channels of every network promise, over TCP and in shared memory.
namespace troupe::transport {

/// A receiver at a door that notes what comes.
class NotingReceiver {
 public:
  Receiving receiving(Bound bound) {
    return {.bound = bound,
            .memory = &memory,
            .listener = {[this](Parcel parcel) {
                           std::string head(parcel.head.size(), '\0');
                           std::ranges::copy(parcel.head,
                                             reinterpret_cast<std::byte*>(head.data()));
                           for (const auto& tensor : parcel.tensors)
                             tensors.add(std::vector<std::byte>(tensor.host_bytes().begin(),
                                                                tensor.host_bytes().end()));
                           heads.add(std::move(head));
                         },
                         [this](const ChannelEnd& end) { ends.add(end.why); }}};
  }

  MemoryPool memory;
  Noted<std::string> heads;
  Noted<std::vector<std::byte>> tensors;
  Noted<ChannelEnd::Why> ends;
};

/// `at` and `before` are what open_door() and connect() want for the carrier under test.
inline void check_channel_contract(NetworkUnderTest& under_test, const std::string& at,
                                   const std::string& before) {
  using namespace std::chrono_literals;
  constexpr Epoch epoch{{0x1234, 0x5678}, 7};
  constexpr Token token{0x0123456789abcdef}, other_token{0x0fedcba987654321};
  constexpr Bound bound{4096, 8};
  const auto wait_for = [&](const std::function<bool()>& condition) {
    const bool holds = under_test.run_until(condition);
    REQUIRE(holds);
  };
  const auto loop = under_test.env(1).make_loop({"test"});
  MemoryPool memory;  // The sender's.
  Noted<ChannelEnd::Why> sender_ends;
  const auto connect = [&](const std::string& to, Epoch to_epoch, Token with_token,
                           Bound with_bound) {
    using Made = Result<std::unique_ptr<Sender>>;
    struct Came {
      std::mutex mutex;
      std::optional<Made> made;
    };
    const auto came = std::make_shared<Came>();
    under_test.network(1).connect(
        to,
        {.epoch = to_epoch,
         .token = with_token,
         .bound = with_bound,
         .memory = &memory,
         .on_end = [&](const ChannelEnd& end) { sender_ends.add(end.why); }},
        *loop, [came](Made made) {
          const std::lock_guard lock(came->mutex);
          came->made = std::move(made);
        });
    wait_for([&] {
      const std::lock_guard lock(came->mutex);
      return came->made.has_value();
    });
    const std::lock_guard lock(came->mutex);
    return std::move(*came->made);
  };
  const auto bytes_of_text = [](const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };

  SECTION("parcels arrive once and in order, and a channel closes after the last one") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    for (int i = 0; i < 100; ++i) {
      Tensor tensor = (*sender)->lend({4}, DType::i32);
      for (int k = 0; k < 4; ++k) tensor.data<std::int32_t>()[k] = 10 * i + k;
      const auto head = std::to_string(i);
      Status sent = Done{};
      // The bound is full until the receiver has taken some.
      wait_for([&] {
        sent = (*sender)->send(bytes_of_text(head), {&tensor, 1});
        return sent.ok();
      });
    }
    wait_for([&] { return there.heads.size() == 100; });
    for (std::size_t i = 0; i < 100; ++i) {
      CHECK(there.heads[i] == std::to_string(i));
      const auto bytes = there.tensors[i];
      REQUIRE(bytes.size() == 16);
      CHECK(reinterpret_cast<const std::int32_t*>(bytes.data())[3] ==
            10 * static_cast<std::int32_t>(i) + 3);
    }
    CHECK((*door)->counters().welcome == 1);
    CHECK((*sender)->close(30s).ok());
    wait_for([&] { return there.ends.size() == 1; });
    CHECK(there.ends[0] == ChannelEnd::Why::closed);
    CHECK(sender_ends.size() == 0);
    CHECK_FALSE((*sender)->send({}, {}).ok());
  }

  SECTION("a receiver learns that its sender is lost, after the parcels that came") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    for (const char* head : {"0", "1", "2", "3"})
      REQUIRE((*sender)->send(bytes_of_text(head), {}).ok());
    sender->reset();
    wait_for([&] { return there.ends.size() == 1; });
    CHECK(there.ends[0] == ChannelEnd::Why::lost);
    const auto heads = there.heads.all();
    for (std::size_t i = 0; i < heads.size(); ++i) CHECK(heads[i] == std::to_string(i));
  }

  SECTION("a sender learns that its receiver is gone") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    receiver.reset();
    wait_for([&] { return sender_ends.size() == 1; });
    CHECK(sender_ends[0] == ChannelEnd::Why::closed);
    CHECK_FALSE((*sender)->send({}, {}).ok());
    CHECK(there.ends.size() == 0);
  }

  SECTION("a door admits one sender with the token, of the same attempt and with the same bound") {
    NotingReceiver there, other;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto to = before + (*door)->address();
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    CHECK_FALSE(connect(to, epoch, other_token, bound));
    CHECK_FALSE(connect(to, {epoch.run, 6}, token, bound));
    CHECK_FALSE(connect(to, {{1, 2}, 7}, token, bound));
    CHECK_FALSE(connect(to, epoch, token, {bound.bytes, 9}));
    auto sender = connect(to, epoch, token, bound);
    REQUIRE(sender);
    CHECK_FALSE(connect(to, epoch, token, bound));
    const auto counters = (*door)->counters();
    CHECK(counters.welcome == 1);
    CHECK(counters.unknown_token == 2);
    CHECK(counters.other_epoch == 1);
    CHECK(counters.other_run == 1);
    CHECK(counters.other_terms == 1);
    // One door serves all receivers of a process.
    const auto second = (*door)->expect(other_token, other.receiving(bound));
    auto second_sender = connect(to, epoch, other_token, bound);
    REQUIRE(second_sender);
    REQUIRE((*sender)->send(bytes_of_text("first"), {}).ok());
    REQUIRE((*second_sender)->send(bytes_of_text("second"), {}).ok());
    wait_for([&] { return there.heads.size() == 1 && other.heads.size() == 1; });
    CHECK(there.heads[0] == "first");
    CHECK(other.heads[0] == "second");
  }

  SECTION("a parcel beyond the bound is an error, and nothing of it is sent") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    const Tensor large = Tensor::make(memory, {4097}, DType::u8);
    CHECK_FALSE((*sender)->send(bytes_of_text("large"), {&large, 1}).ok());
    const Tensor fits = Tensor::make(memory, {4096}, DType::u8);
    REQUIRE((*sender)->send(bytes_of_text("fits"), {&fits, 1}).ok());
    wait_for([&] { return there.heads.size() == 1; });
    CHECK(there.heads[0] == "fits");
  }

  SECTION("nobody is behind an address") {
    std::string gone;
    {
      const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
      REQUIRE(door);
      gone = before + (*door)->address();
    }
    CHECK_FALSE(connect(gone, epoch, token, bound));
  }

  SECTION("a receiver may outlive its door, and a loop that has ended calls nothing") {
    NotingReceiver there;
    std::unique_ptr<Receiver> receiver;
    Result<std::unique_ptr<Sender>> sender = Error{"not connected yet"};
    {
      const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
      REQUIRE(door);
      receiver = (*door)->expect(token, there.receiving(bound));
      sender = connect(before + (*door)->address(), epoch, token, bound);
      REQUIRE(sender);
      const auto ended = under_test.env(1).make_loop({"ended"});
      ended->end();
      under_test.network(1).connect(
          before + (*door)->address(),
          {.epoch = epoch, .token = other_token, .bound = bound, .memory = &memory, .on_end = {}},
          *ended, [&](const auto&) { sender_ends.add({}); });
    }
    REQUIRE((*sender)->send(bytes_of_text("0"), {}).ok());
    wait_for([&] { return there.heads.size() == 1; });
    CHECK(sender_ends.size() == 0);
  }
}

/// A door that does not answer, which only TCP can have.
inline void check_silent_door(NetworkUnderTest& under_test) {
  const auto door = under_test.network(0).open_door("127.0.0.1:0", {});
  REQUIRE(door);
  const auto way = under_test.way_to((*door)->address());
  under_test.stop_ways();
  const auto loop = under_test.env(1).make_loop({"test"});
  MemoryPool memory;
  Noted<std::string> refused;
  under_test.network(1).connect(way,
                                {.epoch = {},
                                 .token = {},
                                 .bound = {4096, 8},
                                 .memory = &memory,
                                 .on_end = {},
                                 .patience = std::chrono::milliseconds(100)},
                                *loop, [&](const Result<std::unique_ptr<Sender>>& made) {
                                  refused.add(made ? "" : made.error().text);
                                });
  const bool came = under_test.run_until([&] { return refused.size() == 1; });
  REQUIRE(came);
  CHECK_FALSE(refused[0].empty());
}

}  // namespace troupe::transport
