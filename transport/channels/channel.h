#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"

/// One-way channels of tensors. What their ends do is the same for every carrier: a hand-over in
/// the process, shared memory between processes of one host, TCP between hosts. (NCCL, between
/// devices, fits as well: lend() gives memory of the device, and a parcel's head and shapes go
/// ahead by one of the others.)
namespace troupe::transport {

/// How much may be under way: sent, and the receiver's listener has not had it yet. A schedule
/// knows how much that is, so more is an error and never a wait. Over TCP the word that a parcel
/// has arrived takes a way of its own: give twice what the schedule has under way there.
struct Bound {
  std::size_t bytes = 0;    // Of tensors. A single parcel may have as many.
  std::size_t parcels = 0;  // With tensors or without.
};

/// Whether what travels is checked against accidents on the way.
enum class Checksums : std::uint8_t { on, off };

constexpr std::size_t most_head_bytes = std::size_t{64} << 10;
constexpr std::size_t most_tensors = 4096;

/// What has come: a head, whose bytes only the actors understand, and tensors. Lives as long as the
/// call that brings it; tensors that are to be kept are moved out.
struct Parcel {
  std::span<const std::byte> head;
  std::span<Tensor> tensors;
};

/// Why nothing more comes, or goes.
struct ChannelEnd {
  enum class Why : std::uint8_t {
    closed,  // By the other end, in peace: whatever was sent before has arrived.
    lost,    // The connection ended without a goodbye: the peer has died, or its host.
    broken,  // What came is not what a sane peer sends.
  };

  Why why = Why::closed;
  std::string text;
};
using OnEnd = std::function<void(const ChannelEnd&)>;

/// What a receiver calls: one call at a time, on the channel's thread (in the process: on that of
/// the sender). Must not wait: everything else on that thread would wait too.
struct Listener {
  std::function<void(Parcel)> on_parcel;
  OnEnd on_end;  // Once, the last call.
};

/// What passed an end so far.
struct ChannelCounters {
  std::uint64_t parcels = 0;
  std::uint64_t bytes = 0;   // Of tensors.
  std::uint64_t copied = 0;  // Of these: those that this end had to copy in memory.
};

/// The sending end. Any thread may use it. What one thread sends arrives in that order, once.
class Sender {
 public:
  /// Cuts the connection: what has not arrived yet may be lost. close() before, in peace.
  virtual ~Sender() = default;

  /// Numbers not set to anything, in memory from which nothing need be copied when they are sent:
  /// where the carrier has such memory, and enough of it; else in memory of the pool.
  virtual Tensor lend(const Shape& shape, DType type) = 0;

  /// Returns at once; the tensors may go later, and must not be written to any more. An error where
  /// more would be under way than the bound allows, or the channel has ended: nothing is sent then.
  virtual Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) = 0;

  /// Waits until all has arrived and says goodbye; an error where that takes longer than
  /// `patience`. Nothing can be sent afterwards.
  virtual Status close(std::chrono::milliseconds patience) = 0;

  virtual ChannelCounters counters() const = 0;
};

/// The receiving end: exists, and its listener is called. Once it is destroyed, which its own
/// listener must not do, nothing is called any more and the sender hears that it is closed.
/// Tensors that have come stay, whatever becomes of either end.
class Receiver {
 public:
  virtual ~Receiver() = default;

  virtual ChannelCounters counters() const = 0;
};

}  // namespace troupe::transport
