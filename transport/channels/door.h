#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/memory/memory_pool.h"
#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/key_agreement.h"

namespace troupe::transport {

/// An attempt of a run. A channel belongs to one attempt; ends of another attempt are rejected.
struct Epoch {
  std::array<std::uint64_t, 2> run{};
  std::uint64_t number = 0;

  friend bool operator==(const Epoch&, const Epoch&) = default;
};

/// The random number that identifies one channel at a door. Only the two ends know it.
enum class Token : std::uint64_t {};

/// The numbers of senders that a door admitted and rejected, by reason.
struct DoorCounters {
  std::uint64_t welcome = 0;
  std::uint64_t other_run = 0;
  std::uint64_t other_epoch = 0;
  std::uint64_t unknown_token = 0;
  std::uint64_t other_terms = 0;  // The sender has another bound, carrier or version.
  std::uint64_t garbage = 0;      // The sender sent no hello.
  std::uint64_t silent = 0;       // The sender sent no complete hello in time.
  std::uint64_t crowded_out = 0;  // Too many senders waited at once.
  std::uint64_t not_sealed = 0;   // The sender is on another machine and does not encrypt.
  std::uint64_t not_proved = 0;   // The sender did not prove that it owns the expected key.
};

/// The parameters of a receiver.
struct Receiving {
  Bound bound;
  MemoryPool* memory = nullptr;  // Must outlive all received tensors.
  Listener listener;
  /// If set, a TCP receiver accepts only encrypted tensors, except from this machine. Shared memory
  /// needs no keys.
  std::shared_ptr<const ChannelKeys> keys = nullptr;
};

struct DoorOrder {
  Epoch epoch;
  std::chrono::milliseconds patience{5000};  // How long a sender may take for its hello.
};

/// The parameters of a sender.
struct Sending {
  Epoch epoch;
  Token token{};
  Bound bound;
  MemoryPool* memory = nullptr;  // Must outlive all tensors that are lent from it.
  OnEnd on_end;                  // Called once, on the channel's thread; not after close().
  std::chrono::milliseconds patience{5000};
  /// If set, a TCP sender encrypts. Shared memory needs no keys.
  std::shared_ptr<const ChannelKeys> keys = nullptr;
};

/// A listening address. One door serves all channels that end in a process. It limits, rejects and
/// counts what strangers send.
class Door {
 public:
  virtual ~Door() = default;

  /// Returns the address that a sender connects to.
  virtual std::string address() const = 0;

  /// Admits the sender with this token, once, and passes what it sends to the listener. The
  /// receiver may outlive the door.
  virtual std::unique_ptr<Receiver> expect(Token token, Receiving receiving) = 0;

  virtual DoorCounters counters() const = 0;
};

}  // namespace troupe::transport
