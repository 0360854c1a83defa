#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"

/// One-way channels of tensors. Their ends behave alike for every carrier: handles within the
/// process, shared memory between processes of one host, TCP between hosts. (NCCL between devices
/// fits too: lend() returns device memory, and another channel carries a parcel's head and shapes.)
namespace troupe::transport {

/// The limit for what is in flight: sent, but not yet passed to the receiver's listener. A schedule
/// knows that amount, so exceeding the bound is an error and never a wait. TCP acknowledgements
/// lag: allow twice the schedule's in-flight amount there.
struct Bound {
  std::size_t bytes = 0;    // Bytes of tensors. A single parcel may use all of them.
  std::size_t parcels = 0;  // Parcels with or without tensors.
};

/// Whether the ends checksum the data to detect corruption on the way.
enum class Checksums : std::uint8_t { on, off };

constexpr std::size_t most_head_bytes = std::size_t{64} << 10;
constexpr std::size_t most_tensors = 4096;

/// A received message: a head, whose bytes only the actors understand, and tensors. Valid only
/// during the call that delivers it; move out the tensors that you keep.
struct Parcel {
  std::span<const std::byte> head;
  std::span<Tensor> tensors;
};

/// The reason why a channel carries nothing more.
struct ChannelEnd {
  enum class Why : std::uint8_t {
    closed,  // The other end closed it in peace: whatever was sent before has arrived.
    lost,    // The connection ended without a goodbye: the peer or its host died.
    broken,  // The other end violated the protocol.
  };

  Why why = Why::closed;
  std::string text;
};
using OnEnd = std::function<void(const ChannelEnd&)>;

/// The callbacks of a receiver. One runs at a time, on the channel's thread (in a local channel: on
/// the sender's thread). They must not block, since they would block all other channels of that
/// thread.
struct Listener {
  std::function<void(Parcel)> on_parcel;
  OnEnd on_end;  // Called once, as the last call.
};

/// Totals of one end.
struct ChannelCounters {
  std::uint64_t parcels = 0;
  std::uint64_t bytes = 0;   // Bytes of tensors.
  std::uint64_t copied = 0;  // The part of `bytes` that this end copied in memory.
};

/// The measurements that a connection has made of its path.
struct PathFigures {
  std::chrono::duration<double> latency{};  // In one direction.
  /// The rate at which bytes arrived. Unset: too few were sent.
  std::optional<double> bytes_per_second;
};

/// The sending end, usable from any thread. Parcels of one thread arrive in order, exactly once.
class Sender {
 public:
  /// Cuts the connection; parcels in flight may be lost. Call close() first to end in peace.
  virtual ~Sender() = default;

  /// Returns an uninitialized tensor that can be sent without a copy if the carrier has such memory
  /// left, and otherwise one from the pool.
  virtual Tensor lend(const Shape& shape, DType type) = 0;

  /// Returns at once. The tensors may be sent later and must not be written any more. Fails, and
  /// sends nothing, if the parcel would exceed the bound or the channel has ended.
  virtual Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) = 0;

  /// Waits until everything has arrived and says goodbye. Fails if that takes longer than
  /// `patience`. Nothing can be sent afterwards.
  virtual Status close(std::chrono::milliseconds patience) = 0;

  virtual ChannelCounters counters() const = 0;

  /// Returns nothing if the carrier does not measure.
  virtual std::optional<PathFigures> path() const { return {}; }
};

/// The receiving end. While it exists, it calls its listener. Its own listener must not destroy it.
/// After destruction nothing is called any more, and the sender learns that the channel is closed.
/// Received tensors outlive both ends.
class Receiver {
 public:
  virtual ~Receiver() = default;

  virtual ChannelCounters counters() const = 0;
};

}  // namespace troupe::transport
