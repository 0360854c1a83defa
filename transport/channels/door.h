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
#include "transport/channels/channel_thread.h"
#include "transport/channels/key_agreement.h"

namespace troupe::transport {

/// Which attempt of which run. A channel belongs to one: an end of another one is turned away.
struct Epoch {
  std::array<std::uint64_t, 2> run{};
  std::uint64_t number = 0;

  friend bool operator==(const Epoch&, const Epoch&) = default;
};

/// What names one channel at a door, and is known to nobody else: a random number.
enum class Token : std::uint64_t {};

/// Who was let in at a door, and who was not, and why.
struct DoorCounters {
  std::uint64_t welcome = 0;
  std::uint64_t other_run = 0;
  std::uint64_t other_epoch = 0;
  std::uint64_t unknown_token = 0;
  std::uint64_t other_terms = 0;  // Another bound, another carrier, another version.
  std::uint64_t garbage = 0;      // Not a hello at all.
  std::uint64_t silent = 0;       // No whole hello within the patience.
  std::uint64_t crowded_out = 0;  // Too many stood there at once.
  std::uint64_t not_sealed = 0;   // Came from another machine and wanted to send in the clear.
  std::uint64_t not_proved = 0;   // Did not prove that it is who it should be.
};

/// How a receiver takes what comes.
struct Receiving {
  Bound bound;
  MemoryPool* memory = nullptr;  // Outlives all that comes.
  Listener listener;
  /// With keys a TCP receiver takes encrypted tensors only, unless the connection comes from this
  /// machine. Shared memory needs none.
  std::shared_ptr<const ChannelKeys> keys = nullptr;
};

struct DoorOrder {
  Epoch epoch;
  std::chrono::milliseconds patience{5000};  // With those who knock and say nothing.
};

/// How a sender asks to be let in.
struct Sending {
  Epoch epoch;
  Token token{};
  Bound bound;
  MemoryPool* memory = nullptr;  // Outlives all that is lent from it.
  OnEnd on_end;                  // On the channel's thread, once; not after close().
  std::chrono::milliseconds patience{5000};
  /// With keys a TCP sender encrypts. Shared memory needs none.
  std::shared_ptr<const ChannelKeys> keys = nullptr;
};

/// Where the senders of other processes knock: one for all the channels that end in a process.
/// Whatever comes from a stranger is bounded, refused and counted.
class Door {
 public:
  virtual ~Door() = default;

  /// What a sender connects to.
  virtual std::string address() const = 0;

  /// The one who has this token is let in, once, and what it sends goes to the listener. The
  /// receiver may live longer than the door.
  virtual std::unique_ptr<Receiver> expect(Token token, Receiving receiving) = 0;

  virtual DoorCounters counters() const = 0;
};

}  // namespace troupe::transport
