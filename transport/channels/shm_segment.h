#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/descriptor.h"
#include "core/result.h"
#include "transport/channels/channel.h"

namespace troupe::transport {

/// The memory that two processes share: control words, a ring of records, and three regions of
/// slots. A record is a ShmRecord, a frame's front, and a ShmPlace for each tensor.
///
/// Each process checks what the other one wrote: the other may have been killed, or be faulty.

constexpr std::size_t ring_bytes = std::size_t{1} << 20;

// Held slots may be aliased by the receiver's tensors; passing slots are copied from at once. The
// slots out at the receiver are limited so that the ring that returns them has room for all.
constexpr std::uint32_t held_slots = 4096;
constexpr std::uint32_t passing_slots = 256;
constexpr std::uint32_t all_slots = held_slots + passing_slots;
constexpr std::uint32_t no_slot = ~std::uint32_t{0};
constexpr std::size_t most_out = 8192;
constexpr std::size_t most_held_out = most_out - passing_slots;

/// An end that waits first sets its flag and then looks once more; the other end first changes the
/// state and then reads the flag. All four operations are seq_cst, so at least one end sees the
/// other.
struct ShmControl {
  // Written by the sender.
  alignas(64) std::atomic<std::uint64_t> written{0};  // Bytes of the ring.
  std::atomic<std::uint32_t> sender_waits{0};  // The receiver must wake the sender after a change.
  std::atomic<std::uint32_t> sender_closed{0};
  // Written by the receiver.
  alignas(64) std::atomic<std::uint64_t> read{0};
  std::atomic<std::uint64_t> taken{0};      // Parcels, counted before the listener gets them.
  std::atomic<std::uint64_t> delivered{0};  // Parcels, counted after the listener returned.
  std::atomic<std::uint32_t> receiver_sleeps{1};
  std::atomic<std::uint32_t> receiver_closed{0};
  alignas(64) std::atomic<std::uint64_t> returned{0};  // Slots.
  alignas(64) std::array<std::atomic<std::uint32_t>, most_out> returns{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct ShmRecord {
  std::uint64_t bytes = 0;              // The whole record with this header; a multiple of 8.
  std::uint32_t shared_slot = no_slot;  // The slot of tensors that were not lent.
  std::uint32_t zero = 0;
};
struct ShmPlace {
  std::uint64_t offset = 0;  // In the segment.
  std::uint32_t slot = 0;
  std::uint32_t zero = 0;
};

class ShmSegment {
 public:
  static Result<std::shared_ptr<ShmSegment>> make(Bound bound);
  static Result<std::shared_ptr<ShmSegment>> open(const Descriptor& file, Bound bound);
  /// Returns whether the file has the length that the bound requires and cannot be shortened.
  static bool is_sane(const Descriptor& file, Bound bound);

  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  const Descriptor& file() const { return file_; }
  ShmControl& control() { return *reinterpret_cast<ShmControl*>(memory_); }
  std::byte* memory() { return memory_; }
  std::size_t bytes() const { return bytes_; }

  /// Offsets of the regions.
  std::size_t held() const { return held_; }
  std::size_t passing() const { return passing_; }

  /// Copies bytes to or from the ring, which wraps around.
  void write_ring(std::uint64_t at, const void* from, std::size_t bytes);
  void read_ring(std::uint64_t at, void* to, std::size_t bytes);

 private:
  ShmSegment() = default;
  std::byte* ring();
  static std::size_t bytes_for(Bound bound);

  Descriptor file_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t held_ = 0;
  std::size_t passing_ = 0;
};

}  // namespace troupe::transport
