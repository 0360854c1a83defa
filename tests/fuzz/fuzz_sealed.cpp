#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/memory/memory_pool.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door_rules.h"
#include "transport/channels/socket.h"
#include "transport/channels/tcp_channel.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

using Bytes = std::vector<std::byte>;

constexpr Epoch epoch{{1, 2}, 3};
constexpr Bound bound{100'000, 4};

/// The data that a client sends to a receiver after the first byte of the input.
enum class Says : std::uint8_t {
  anything,        // Arbitrary bytes at once.
  after_greeting,  // Arbitrary bytes after the greeting, without the agreed keys.
  sealed,          // Records with the agreed keys, each a size in two bytes and its bytes.
  offer,           // A valid hello with another offer.
  kinds,
};

/// The keys of both ends, made once.
struct Keys {
  KeyPair sender = make_key_pair().value(), receiver = make_key_pair().value();
  std::shared_ptr<const ChannelKeys> of_sender =
      std::make_shared<ChannelKeys>(ChannelKeys{sender, receiver.public_key});
  std::shared_ptr<const ChannelKeys> of_receiver =
      std::make_shared<ChannelKeys>(ChannelKeys{receiver, sender.public_key});
};

Hello sealed_hello() {
  Sending sending{epoch, Token{7}, bound, nullptr, {}};
  Hello hello = hello_of(sending, Carrier::tcp, Checksums::off);
  hello.protection = Protection::sealed;
  return hello;
}

template <class T>
void append(Bytes& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void say(int socket, std::span<const std::byte> bytes) {
  (void)!::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Seals the input as records of a sender with the right keys.
Bytes seal_records(std::span<const std::byte> input, const SealTerms& terms) {
  RecordSeal seal(terms);
  Bytes all;
  while (input.size() >= 2) {
    const auto wanted = std::to_integer<std::size_t>(input[0]) +
                        std::size_t{256} * std::to_integer<std::size_t>(input[1]);
    input = input.subspan(2);
    const auto plain = input.first(std::min(wanted, input.size()));
    input = input.subspan(plain.size());
    Bytes record(plain.size());
    const auto tag = seal.seal(plain, record.data());
    all.insert(all.end(), record.begin(), record.end());
    all.insert(all.end(), tag.begin(), tag.end());
  }
  return all;
}

}  // namespace

/// A client of an encrypted channel. Without the keys none of its parcels arrives. With them only
/// valid parcels within the bound arrive. At worst the channel ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Keys keys;
  if (size == 0) return 0;
  const auto says = static_cast<Says>(data[0] % static_cast<std::uint8_t>(Says::kinds));
  const auto input = std::as_bytes(std::span(data + 1, size - 1));

  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::size_t parcels = 0;
  MemoryPool pool;
  ChannelThread thread;
  const Listener listener{[&](const Parcel& parcel) {
                            std::size_t bytes = 0;
                            for (const auto& tensor : parcel.tensors) bytes += tensor.bytes();
                            // Alignment of tensors may exceed the bound.
                            if (bytes > bound.bytes + parcel.tensors.size() * payload_alignment)
                              std::abort();
                            ++parcels;
                          },
                          [&](const ChannelEnd& end) {
                            if (end.text.empty()) std::abort();
                            const std::lock_guard lock(mutex);
                            ended = true;
                            changed.notify_all();
                          }};
  const auto door = open_tcp_door(thread, "127.0.0.1:0", {epoch}).value();
  const auto receiver = door->expect(Token{7}, {bound, &pool, listener, keys.of_receiver});
  {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto socket = connect_to(tcp_address(door->address()).value(), until);
    if (!socket) std::abort();
    const Hello hello = sealed_hello();
    if (says == Says::anything) {
      say(socket->number(), input);
    } else if (says == Says::offer) {
      Bytes all;
      append(all, hello);
      all.insert(all.end(), input.begin(), input.end());
      say(socket->number(), all);
    } else {
      const auto asker = KeyAsker::begin(*keys.of_sender, hello);
      if (!asker) std::abort();
      Bytes all;
      append(all, hello);
      append(all, asker->offer());
      KeyAnswer answer;
      const Knocking knocking{.hello = all,
                              .greeting = std::as_writable_bytes(std::span(&answer, 1))};
      if (!be_let_in(*socket, knocking, until)) std::abort();
      const auto terms = asker->finish(answer);
      if (!terms) std::abort();
      if (says == Says::sealed)
        say(socket->number(), seal_records(input, terms->forth));
      else
        say(socket->number(), input);
      shutdown(socket->number(), SHUT_WR);
      std::unique_lock lock(mutex);
      if (!changed.wait_for(lock, std::chrono::seconds(60), [&] { return ended; })) std::abort();
      if (says != Says::sealed && parcels > 0) std::abort();
      return 0;
    }
    // The receiver hangs up after it has read everything.
    shutdown(socket->number(), SHUT_WR);
    std::array<std::byte, 256> some;
    pollfd ready{socket->number(), POLLIN, 0};
    while (poll(&ready, 1, 60'000) > 0 && recv(socket->number(), some.data(), some.size(), 0) > 0) {
    }
  }
  if (parcels > 0 && says == Says::offer) std::abort();
  return 0;
}
