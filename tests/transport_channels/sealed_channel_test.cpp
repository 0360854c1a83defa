#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>

#include "catch.h"
#include "core/random.h"
#include "ends.h"
#include "middleman.h"
#include "transport/channels/frame.h"
#include "transport/channels/socket.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr Bound sealed_bound{40'000'000, 8};

/// Returns an address of this machine that is not loopback; empty if it has none.
std::string outer_address() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string found;
  for (const auto* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    SocketAddress address;
    address.size = sizeof(sockaddr_in);
    std::memcpy(&address.storage, one->ifa_addr, address.size);
    if (!is_loopback(address)) found = to_text(address);
  }
  freeifaddrs(all);
  return found.substr(0, found.rfind(':'));
}

/// A receiver with a door, and the keys of both ends.
struct SealedHost {
  explicit SealedHost(const std::string& interface = "127.0.0.1") {
    door = open_tcp_door(*thread, interface + ":0", {this_epoch, std::chrono::seconds(60)}).value();
    receiver = door->expect(this_token, {sealed_bound, &pool, inbox.listener(), keys.receiver});
  }
  Sending sending() {
    return {this_epoch,   this_token,    sealed_bound,
            &sender_pool, back.on_end(), std::chrono::seconds(60),
            keys.sender};
  }

  KeysOfTwo keys = make_keys_of_two();
  std::vector<std::byte> last;  // The bytes of the last tensor.
  Inbox back, inbox{[this](const Parcel&parcel, std::uint64_t) {
    const auto bytes = parcel.tensors[0].host_bytes();
    last.assign(bytes.begin(), bytes.end());
  }};
  MemoryPool pool, sender_pool;
  const OwnThread thread = std::make_unique<ChannelThread>();
  const OwnThread sender_thread = std::make_unique<ChannelThread>();
  std::unique_ptr<Door> door;
  std::unique_ptr<Receiver> receiver;
};

Tensor made_tensor(MemoryPool& pool, std::int64_t bytes, std::uint64_t seed) {
  Tensor tensor = Tensor::make(pool, {bytes}, DType::u8);
  const RandomKey key{.seed = seed};
  auto* to = tensor.data<std::uint8_t>();
  for (std::int64_t i = 0; i + 16 <= bytes; i += 16) {
    const auto words = key.words(static_cast<std::uint32_t>(i / 16));
    std::memcpy(to + i, words.data(), 16);
  }
  return tensor;
}

std::span<const std::byte> head_bytes() { return std::as_bytes(std::span("head", 4)); }

// The sizes in transit of a parcel with a head of 4 bytes and a tensor of 1,000 bytes.
constexpr std::size_t greeting_bytes = sizeof(Hello) + sizeof(KeyOffer);
constexpr std::size_t header_bytes = sizeof(FrameHeader) + seal_tag_bytes;
constexpr std::size_t front_bytes = 4 + sizeof(TensorRecord) + seal_tag_bytes;
constexpr std::size_t payload_bytes = aligned(1'000) + seal_tag_bytes;
constexpr std::size_t parcel_bytes = header_bytes + front_bytes + payload_bytes;

bool contains(const Middleman::Bytes& all, std::span<const std::byte> piece) {
  return std::search(all.begin(), all.end(), piece.begin(), piece.end()) != all.end();
}

}  // namespace

TEST_CASE("an eavesdropper on an encrypted channel sees neither head nor tensor", "[transport]") {
  const bool sealed = GENERATE(true, false);
  SealedHost host;
  const Middleman reader(host.door->address(), {});
  auto sending = host.sending();
  if (!sealed)
    sending.keys = nullptr;  // A receiver accepts a plain channel only from this machine.
  auto sender = connect_tcp(*host.sender_thread, reader.address(), sending);
  REQUIRE(sender.ok());
  const std::string head = "what the players say: 0123456789abcdef";
  const auto tensor = made_tensor(host.sender_pool, 300'000, 5);
  REQUIRE((*sender)->send(std::as_bytes(std::span(head)), {&tensor, 1}).ok());
  REQUIRE(host.inbox.wait_for(1));
  const auto plain = tensor.host_bytes();
  CHECK(std::ranges::equal(host.last, plain));
  const auto said = reader.said();
  CHECK(contains(said, std::as_bytes(std::span(head)).first(16)) == !sealed);
  for (const std::size_t at : {std::size_t{0}, std::size_t{131'072}, std::size_t{299'968}})
    CHECK(contains(said, plain.subspan(at, 32)) == !sealed);
  CHECK((*sender)->close(wait_limit).ok());
}

TEST_CASE("large, small and empty tensors cross an encrypted channel unchanged", "[transport]") {
  SealedHost host;
  auto sender = connect_tcp(*host.sender_thread, host.door->address(), host.sending());
  REQUIRE(sender.ok());
  std::uint64_t sent = 0;
  for (const std::int64_t bytes : {0, 1, 64, 131'072, 131'073, 262'144, 16 << 20, 33 << 20, 0}) {
    INFO(bytes);
    const auto tensor = made_tensor(host.sender_pool, bytes, 9);
    REQUIRE(send_in_time(**sender, head_bytes(), {&tensor, 1}).ok());
    REQUIRE(host.inbox.wait_for(++sent));
    CHECK(std::ranges::equal(host.last, tensor.host_bytes()));
  }
  CHECK((*sender)->close(wait_limit).ok());
  CHECK(host.inbox.wait_for_end()->why == ChannelEnd::Why::closed);
}

TEST_CASE("a change in transit ends an encrypted channel", "[transport]") {
  SealedHost host;
  Middleman::Window window{greeting_bytes, 2 * parcel_bytes, {}};
  std::uint64_t arrives = 0;
  auto why = ChannelEnd::Why::broken;
  const auto flip = [](std::size_t at) {
    return [at](Middleman::Bytes& bytes) { bytes[at] ^= std::byte{1}; };
  };
  SECTION("a byte of the header") { window.change = flip(5); }
  SECTION("the tag of the header") { window.change = flip(header_bytes - 1); }
  SECTION("a byte of the head") { window.change = flip(header_bytes); }
  SECTION("a byte of the tensor's shape") { window.change = flip(header_bytes + 4 + 16); }
  SECTION("a byte of the tensor") { window.change = flip(header_bytes + front_bytes + 500); }
  SECTION("the tag of the tensor") { window.change = flip(parcel_bytes - 1); }
  SECTION("a byte of the second tensor") {
    window.change = flip(2 * parcel_bytes - 100);
    arrives = 1;
  }
  SECTION("the first parcel twice") {
    window.change = [](Middleman::Bytes& bytes) {
      std::copy_n(bytes.begin(), parcel_bytes, bytes.begin() + parcel_bytes);
    };
    arrives = 1;
  }
  SECTION("the second parcel first") {
    window.change = [](Middleman::Bytes& bytes) {
      std::swap_ranges(bytes.begin(), bytes.begin() + parcel_bytes, bytes.begin() + parcel_bytes);
    };
  }
  SECTION("only the second parcel") {
    window.change = [](Middleman::Bytes& bytes) {
      bytes.erase(bytes.begin(), bytes.begin() + parcel_bytes);
    };
  }
  SECTION("the end of a tensor left out") {
    window.change = [](Middleman::Bytes& bytes) {
      bytes.erase(bytes.begin() + parcel_bytes - 64, bytes.begin() + parcel_bytes);
    };
  }
  SECTION("the end of it all left out") {
    window.change = [](Middleman::Bytes& bytes) { bytes.resize(bytes.size() - 1); };
    window.then_hang_up = true;
    arrives = 1;
    why = ChannelEnd::Why::lost;
  }
  SECTION("a connection that ends where a parcel ends") {
    window.change = [](Middleman::Bytes&) {};
    window.then_hang_up = true;
    arrives = 2;
    why = ChannelEnd::Why::lost;
  }
  const Middleman man(host.door->address(), window);
  auto sender = connect_tcp(*host.sender_thread, man.address(), host.sending());
  REQUIRE(sender.ok());
  const auto tensor = made_tensor(host.sender_pool, 1'000, 6);
  for (int i = 0; i < 2; ++i) REQUIRE((*sender)->send(head_bytes(), {&tensor, 1}).ok());
  const auto end = host.inbox.wait_for_end();
  REQUIRE(end);
  CHECK(end->why == why);
  if (why == ChannelEnd::Why::broken) CHECK(end->text == not_as_sealed);
  CHECK(host.inbox.parcels() == arrives);
  CHECK(host.pool.counters().bytes_in_use == 0);
}

TEST_CASE("a change in an acknowledgement ends an encrypted channel", "[transport]") {
  constexpr std::size_t answer_bytes = sizeof(Answer) + sizeof(KeyAnswer);
  constexpr std::size_t word_bytes = sizeof(Arrived) + seal_tag_bytes;
  SealedHost host;
  Middleman::Window window{answer_bytes, word_bytes, {}};
  SECTION("a changed byte") {
    window.change = [](Middleman::Bytes& bytes) { bytes[20] ^= std::byte{1}; };
  }
  SECTION("a word again") {
    window.change = [](Middleman::Bytes& bytes) {
      bytes.insert(bytes.end(), bytes.begin(), bytes.begin() + word_bytes);
    };
  }
  const Middleman man(host.door->address(), {}, window);
  auto sender = connect_tcp(*host.sender_thread, man.address(), host.sending());
  REQUIRE(sender.ok());
  const auto tensor = made_tensor(host.sender_pool, 1'000, 6);
  REQUIRE((*sender)->send(head_bytes(), {&tensor, 1}).ok());
  const auto end = host.back.wait_for_end();
  REQUIRE(end);
  CHECK(end->why == ChannelEnd::Why::broken);
  CHECK(end->text == not_as_sealed);
}

TEST_CASE("no byte of the greeting of an encrypted channel can be changed", "[transport]") {
  // Excludes the field that says whether there is a greeting; the test of plain channels covers it.
  const auto protection = [](std::size_t at) {
    return at >= offsetof(Hello, protection) && at < sizeof(Hello);
  };
  for (std::size_t at = 0; at < greeting_bytes; at += 3) {
    if (protection(at)) continue;
    SealedHost host;
    const Middleman man(host.door->address(),
                        Middleman::Window{0, greeting_bytes, [at](Middleman::Bytes& bytes) {
                                            bytes[at] ^= std::byte{1};
                                          }});
    INFO(at);
    CHECK(!connect_tcp(*host.sender_thread, man.address(), host.sending()).ok());
    CHECK(host.door->counters().welcome == 0);
    // The token was not used up.
    CHECK(connect_tcp(*host.sender_thread, host.door->address(), host.sending()).ok());
  }
  constexpr std::size_t answer_bytes = sizeof(Answer) + sizeof(KeyAnswer);
  for (std::size_t at = 0; at < answer_bytes; at += 3) {
    if (at >= offsetof(Answer, zero) && at < sizeof(Answer)) continue;
    SealedHost host;
    const Middleman man(host.door->address(), {},
                        Middleman::Window{0, answer_bytes, [at](Middleman::Bytes& bytes) {
                                            bytes[at] ^= std::byte{1};
                                          }});
    INFO(at);
    CHECK(!connect_tcp(*host.sender_thread, man.address(), host.sending()).ok());
  }
}

TEST_CASE("a door refuses a sender with another key and reports that", "[transport]") {
  SealedHost host;
  auto sending = host.sending();
  sending.keys =
      std::make_shared<ChannelKeys>(ChannelKeys{make_key_pair().value(), host.keys.sender->peer});
  const auto stranger = connect_tcp(*host.sender_thread, host.door->address(), sending);
  REQUIRE(!stranger.ok());
  CHECK(stranger.error().text.find(
            "it rejects the key of this process: the head announced another key") !=
        std::string::npos);
  CHECK(host.door->counters().not_proved == 1);
  // The token is still valid for the right sender.
  CHECK(connect_tcp(*host.sender_thread, host.door->address(), host.sending()).ok());
}

TEST_CASE("a sender refuses a receiver with another key", "[transport]") {
  SealedHost host;
  // The token is used at the door of another receiver, which knows the sender's key.
  const auto stranger = make_key_pair().value();
  auto sending = host.sending();
  sending.keys =
      std::make_shared<ChannelKeys>(ChannelKeys{host.keys.sender->own, stranger.public_key});
  CHECK(!connect_tcp(*host.sender_thread, host.door->address(), sending).ok());
}

TEST_CASE("plain tensors are accepted only from this machine", "[transport]") {
  const auto outer = outer_address();
  if (outer.empty()) {
    WARN("skipped: this machine has no address beside the loopback ones");
    return;
  }
  {
    SealedHost host(outer);
    auto sending = host.sending();
    sending.keys = nullptr;
    const auto plain = connect_tcp(*host.sender_thread, host.door->address(), sending);
    REQUIRE(!plain.ok());
    CHECK(plain.error().text.find("it accepts encrypted tensors only") != std::string::npos);
    CHECK(host.door->counters().not_sealed == 1);
    auto sealed = connect_tcp(*host.sender_thread, host.door->address(), host.sending());
    REQUIRE(sealed.ok());
    const auto tensor = made_tensor(host.sender_pool, 1'000, 6);
    REQUIRE((*sealed)->send(head_bytes(), {&tensor, 1}).ok());
    CHECK(host.inbox.wait_for(1));
  }
  SealedHost host;
  auto sending = host.sending();
  sending.keys = nullptr;
  CHECK(connect_tcp(*host.sender_thread, host.door->address(), sending).ok());
}

TEST_CASE("loopback addresses are recognized", "[transport]") {
  for (const auto* local : {"127.0.0.1:1", "127.9.8.7:1", "[::1]:1", "[::ffff:127.0.0.1]:1"})
    CHECK(is_loopback(tcp_address(local).value()));
  for (const auto* other :
       {"10.0.0.1:1", "128.0.0.1:1", "0.0.0.0:1", "[::2]:1", "[::]:1", "[::ffff:10.0.0.1]:1"})
    CHECK(!is_loopback(tcp_address(other).value()));
}
