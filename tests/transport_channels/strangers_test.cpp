#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "catch.h"
#include "core/random.h"
#include "ends.h"
#include "transport/channels/door_rules.h"
#include "transport/channels/frame.h"
#include "transport/channels/running_checksum.h"
#include "transport/channels/socket.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr Bound bound{1'000'000, 8};

std::span<const std::byte> bytes_of_text(const std::string& text) {
  return std::as_bytes(std::span(text));
}
template <class T>
std::span<const std::byte> bytes_of_struct(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// A client that talks to a door in raw bytes.
class Stranger {
 public:
  explicit Stranger(const std::string& address) {
    const auto until = std::chrono::steady_clock::now() + wait_limit;
    auto socket = connect_to(tcp_address(address).value(), until);
    if (socket) socket_ = std::move(*socket);
  }

  void say(std::span<const std::byte> bytes) { send_now(socket_.number(), bytes); }
  /// Closes the sending half of the connection.
  void fall_silent() { shutdown(socket_.number(), SHUT_WR); }

  /// Reads until the other end closes and returns the number of bytes; nothing if it does not close
  /// in time.
  std::optional<std::size_t> heard_until_the_end() {
    std::size_t bytes = 0;
    const bool ended = comes_true([&] {
      std::byte some[256];
      const auto came = recv(socket_.number(), some, sizeof some, MSG_DONTWAIT);
      if (came > 0) bytes += static_cast<std::size_t>(came);
      return came == 0 || (came < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    });
    return ended ? std::optional(bytes) : std::nullopt;
  }
  bool hear(std::span<std::byte> to) {
    std::size_t got = 0;
    return comes_true([&] {
      const auto came = recv(socket_.number(), to.data() + got, to.size() - got, MSG_DONTWAIT);
      if (came > 0) got += static_cast<std::size_t>(came);
      return got == to.size();
    });
  }

 private:
  Descriptor socket_;
};

/// A door that expects one sender, and its results.
struct Host {
  explicit Host(std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    door = open_tcp_door(*thread, "127.0.0.1:0", {this_epoch, patience}).value();
    receiver = door->expect(this_token, {bound, &pool, inbox.listener()});
  }

  Sending sending() { return {this_epoch, this_token, bound, &pool, {}}; }
  /// Returns whether a valid sender is admitted and its parcel arrives.
  bool works() {
    auto sender = connect_tcp(*thread, door->address(), sending());
    return sender && (*sender)->send({}, {}).ok() && inbox.wait_for(1) &&
           (*sender)->close(wait_limit).ok();
  }

  Inbox inbox;
  MemoryPool pool;
  const OwnThread thread = std::make_unique<ChannelThread>();
  std::unique_ptr<Door> door;
  std::unique_ptr<Receiver> receiver;
};

Hello sane_hello() {
  return hello_of({this_epoch, this_token, bound, nullptr, {}}, Carrier::tcp, Checksums::on);
}

/// Returns a client that the host has admitted.
Stranger let_in(Host& host) {
  Stranger stranger(host.door->address());
  stranger.say(bytes_of_struct(sane_hello()));
  Answer answer;
  REQUIRE(stranger.hear(std::as_writable_bytes(std::span(&answer, 1))));
  REQUIRE(answer.verdict == Verdict::welcome);
  return stranger;
}

/// Returns a parcel with a tensor of 1,000 bytes in its wire form.
std::vector<std::byte> frame(std::uint64_t sequence) {
  MemoryPool pool;
  const Tensor tensor = Tensor::make(pool, {1'000}, DType::u8);
  std::memset(const_cast<void*>(tensor.raw()), 3, 1'000);
  std::vector<std::byte> bytes;
  write_front(bytes_of_text("head"), {&tensor, 1}, bytes);
  number_front(bytes, this_epoch.number, sequence, Checksums::on);
  const auto* numbers = static_cast<const std::byte*>(tensor.raw());
  bytes.insert(bytes.end(), numbers, numbers + 1'000);
  bytes.resize(bytes.size() + 24);
  RunningChecksum running;
  running.reach({numbers, 1'000}, 1'000);
  const auto sum = running.sum();
  bytes.insert(bytes.end(), bytes_of_struct(sum).begin(), bytes_of_struct(sum).end());
  return bytes;
}

}  // namespace

namespace {

/// A change to a valid sender, and how a door refuses the changed sender.
struct WrongTerm {
  void (*change)(Sending& sending);
  std::string_view text;
  std::uint64_t DoorCounters::*counter;
};
const WrongTerm wrong_terms[] = {
    {[](Sending& sending) { sending.epoch.run[1] ^= 1; }, "another run", &DoorCounters::other_run},
    {[](Sending& sending) { sending.epoch.number = 6; }, "another attempt",
     &DoorCounters::other_epoch},
    {[](Sending& sending) { sending.epoch.number = 8; }, "another attempt",
     &DoorCounters::other_epoch},
    {[](Sending& sending) { sending.token = Token{1}; }, "does not expect this token",
     &DoorCounters::unknown_token},
    {[](Sending& sending) { sending.bound.bytes = 2'000'000; }, "another limit",
     &DoorCounters::other_terms},
    {[](Sending& sending) { sending.bound.parcels = 9; }, "another limit",
     &DoorCounters::other_terms},
};

/// Checks that a door has refused a sender for this term and has admitted none.
void check_refused(const Result<std::unique_ptr<Sender>>& sender, const Door& door,
                   const WrongTerm& wrong) {
  REQUIRE(!sender.ok());
  CHECK(sender.error().text.find(door.address() + ": rejected: ") == 0);
  CHECK(sender.error().text.find(wrong.text) != std::string::npos);
  CHECK(door.counters().*wrong.counter == 1);
  CHECK(door.counters().welcome == 0);
}

}  // namespace

TEST_CASE("a sender with another run, epoch, token or bound is refused", "[transport]") {
  for (const auto& wrong : wrong_terms) {
    INFO(wrong.text);
    Host host;
    auto sending = host.sending();
    wrong.change(sending);
    check_refused(connect_tcp(*host.thread, host.door->address(), sending), *host.door, wrong);
    CHECK(host.works());
    CHECK(host.door->counters().welcome == 1);
  }
}

TEST_CASE("a token is valid for one sender", "[transport]") {
  Host host;
  const auto first = connect_tcp(*host.thread, host.door->address(), host.sending());
  CHECK(first.ok());
  const auto second = connect_tcp(*host.thread, host.door->address(), host.sending());
  CHECK(!second.ok());
}

TEST_CASE("a shared-memory door refuses a sender with another run, epoch, token or bound",
          "[transport]") {
  for (const auto& wrong : wrong_terms) {
    INFO(wrong.text);
    Inbox inbox;
    MemoryPool pool;
    const OwnThread thread = std::make_unique<ChannelThread>();
    const auto door = open_shm_door(*thread, {this_epoch}).value();
    const auto receiver = door->expect(this_token, {bound, &pool, inbox.listener()});
    const Sending valid{this_epoch, this_token, bound, &pool, {}};
    Sending sending = valid;
    wrong.change(sending);
    check_refused(connect_shm(*thread, door->address(), sending), *door, wrong);

    const auto sender = connect_shm(*thread, door->address(), valid);
    REQUIRE(sender.ok());
    REQUIRE((*sender)->send({}, {}).ok());
    CHECK(inbox.wait_for(1));
    CHECK((*sender)->close(wait_limit).ok());
    CHECK(door->counters().welcome == 1);
  }
}

TEST_CASE("connecting to an address without a door is an error", "[transport]") {
  MemoryPool pool;
  const OwnThread thread = std::make_unique<ChannelThread>();
  std::string address;
  {
    const auto door = open_tcp_door(*thread, "127.0.0.1:0", {this_epoch}).value();
    address = door->address();
  }
  const Sending sending{this_epoch, this_token, bound, &pool, {}};
  const auto refused = connect_tcp(*thread, address, sending);
  REQUIRE(!refused.ok());
  CHECK(refused.error().text == address + ": cannot connect: Connection refused");
  const auto no_address = connect_tcp(*thread, "example.org:80", sending);
  REQUIRE(!no_address.ok());
  CHECK(no_address.error().text.find("\"example.org:80\" is no address") == 0);
  CHECK(!connect_shm(*thread, "troupe/nobody", sending).ok());
}

TEST_CASE("connecting to a door that does not answer times out", "[transport]") {
  const auto deaf = listen_at(tcp_address("127.0.0.1:0").value()).value();
  MemoryPool pool;
  const OwnThread thread = std::make_unique<ChannelThread>();
  Sending sending{this_epoch, this_token, bound, &pool, {}, std::chrono::milliseconds(50)};
  const auto sender = connect_tcp(*thread, to_text(address_of(deaf)), sending);
  REQUIRE(!sender.ok());
  CHECK(sender.error().text.find("no answer to the greeting in time") != std::string::npos);
}

TEST_CASE("invalid data at the door is counted, and the door keeps working", "[transport]") {
  Host host;
  const RandomKey key{.seed = 11};
  constexpr int strangers = 60;
  for (std::uint32_t i = 0; i < strangers; ++i) {
    Stranger stranger(host.door->address());
    if (i % 3 == 0) {
      stranger.say(bytes_of_text("GET / HTTP/1.1\r\nHost: troupe\r\n\r\n"));
    } else if (i % 3 == 1) {
      std::vector<std::uint32_t> random;
      for (std::uint32_t block = 0; block < 500; ++block)
        for (const auto word : key.words(i * 1000 + block)) random.push_back(word);
      stranger.say(std::as_bytes(std::span(random)));
    } else {
      stranger.say(bytes_of_struct(sane_hello()).first(i));
      stranger.fall_silent();
    }
    const auto heard = stranger.heard_until_the_end();
    REQUIRE(heard);
    CHECK(*heard == 0);
  }
  CHECK(host.door->counters().garbage == strangers);
  CHECK(host.pool.counters().allocations == 0);
  CHECK(host.works());
}

TEST_CASE("a client that sends nothing is disconnected", "[transport]") {
  Host host(std::chrono::milliseconds(30));
  Stranger silent(host.door->address()), slow(host.door->address());
  slow.say(bytes_of_struct(sane_hello()).first(40));
  CHECK(silent.heard_until_the_end() == std::optional<std::size_t>(0));
  CHECK(slow.heard_until_the_end() == std::optional<std::size_t>(0));
  CHECK(host.door->counters().silent == 2);
}

TEST_CASE("the number of clients that wait at the door is bounded", "[transport]") {
  Host host;
  std::vector<Stranger> crowd;
  for (int i = 0; i < 200; ++i) crowd.emplace_back(host.door->address());
  CHECK(host.works());
  CHECK(host.door->counters().crowded_out >= 200 + 1 - 64 - 1);
}

TEST_CASE("an invalid frame ends the channel", "[transport]") {
  Host host;
  auto stranger = let_in(host);
  auto bytes = frame(0);
  std::size_t parcels_before = 0;
  const auto change = [&](std::size_t at, std::uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  };
  SECTION("random bytes") {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 5);
  }
  SECTION("a huge payload") { change(offsetof(FrameHeader, payload_bytes), ~std::uint64_t{0}); }
  SECTION("a payload above the bound") { change(offsetof(FrameHeader, payload_bytes), 2'000'000); }
  SECTION("another epoch") { change(offsetof(FrameHeader, epoch), 6); }
  SECTION("a number that was not its turn") { bytes = frame(1); }
  SECTION("a frame again") {
    stranger.say(bytes);
    parcels_before = 1;
  }
  SECTION("another bit in the shape") { bytes[sizeof(FrameHeader) + 4 + 16] ^= std::byte{1}; }
  SECTION("another bit in the head") { bytes[sizeof(FrameHeader)] ^= std::byte{1}; }
  SECTION("another bit in the tensor") { bytes[bytes.size() - 500] ^= std::byte{1}; }
  SECTION("another bit in the checksum") { bytes.back() ^= std::byte{1}; }
  stranger.say(bytes);
  CHECK(stranger.heard_until_the_end());
  const auto end = host.inbox.wait_for_end();
  REQUIRE(end);
  CHECK(end->why == ChannelEnd::Why::broken);
  CHECK(host.inbox.parcels() == parcels_before);
  CHECK(host.pool.counters().bytes_reserved < 10'000);
  CHECK(host.pool.counters().bytes_in_use == 0);
  CHECK(!connect_tcp(*host.thread, host.door->address(), host.sending()).ok());
}

TEST_CASE("a valid frame arrives even byte by byte, and a part of one never does", "[transport]") {
  Host host;
  auto stranger = let_in(host);
  for (const auto& byte : frame(0)) stranger.say({&byte, 1});
  REQUIRE(host.inbox.wait_for(1));
  const auto second = frame(1);
  stranger.say(std::span(second).first(second.size() - 1));
  stranger.fall_silent();
  const auto end = host.inbox.wait_for_end();
  REQUIRE(end);
  CHECK(end->why == ChannelEnd::Why::lost);
  CHECK(host.inbox.parcels() == 1);
  CHECK(host.pool.counters().bytes_in_use == 0);
}

TEST_CASE("a receiver that sends invalid data ends the channel", "[transport]") {
  const auto listening = listen_at(tcp_address("127.0.0.1:0").value()).value();
  const auto address = to_text(address_of(listening));
  Inbox back;
  MemoryPool pool;
  const OwnThread thread = std::make_unique<ChannelThread>();
  Arrived word;
  word.epoch = this_epoch.number;
  SECTION("another epoch") { word.epoch = 6; }
  SECTION("more than was sent") { word.parcels = 2; }
  SECTION("another kind") { word.kind = FrameKind::parcel; }
  std::thread mad([&] {
    int connection = -1;
    comes_true([&] {
      connection = accept(listening.number(), nullptr, nullptr);
      return connection >= 0;
    });
    std::byte hello[sizeof(Hello)];
    recv(connection, hello, sizeof hello, MSG_WAITALL);
    const Answer answer;
    send_now(connection, bytes_of_struct(answer));
    send_now(connection, bytes_of_struct(word));
    char byte = 0;
    while (recv(connection, &byte, 1, 0) > 0) continue;
    close(connection);
  });
  {
    const Sending sending{this_epoch, this_token, bound, &pool, back.on_end()};
    auto sender = connect_tcp(*thread, address, sending);
    REQUIRE(sender.ok());
    const auto end = back.wait_for_end();
    REQUIRE(end);
    CHECK(end->why == ChannelEnd::Why::broken);
    CHECK(!(*sender)->send({}, {}).ok());
  }
  mad.join();
}
