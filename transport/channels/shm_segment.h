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

/// The segment of two processes: control words, a ring of records, and three regions of slots. A
/// record is a ShmRecord, a frame's front and a ShmPlace for each tensor.
///
/// Either process reads what the other has written with care: it may have been killed, or be mad.

constexpr std::size_t ring_bytes = std::size_t{1} << 20;

// Slots that the receiver's tensors may alias, and those that are copied from at once. What is out
// with the receiver is bounded, so that the ring in which slots come back has room for all.
constexpr std::uint32_t held_slots = 4096;
constexpr std::uint32_t passing_slots = 256;
constexpr std::uint32_t all_slots = held_slots + passing_slots;
constexpr std::uint32_t no_slot = ~std::uint32_t{0};
constexpr std::size_t most_out = 8192;
constexpr std::size_t most_held_out = most_out - passing_slots;

/// An end that waits for the other says so, and then looks once more; the other changes something,
/// and then looks whether it is waited for. These four are in one order, seq_cst, so that never
/// both see nothing.
struct ShmControl {
  // The sender's.
  alignas(64) std::atomic<std::uint64_t> written{0};  // Bytes, of the ring.
  std::atomic<std::uint32_t> sender_waits{0};         // Ring once something has changed.
  std::atomic<std::uint32_t> sender_closed{0};
  // The receiver's.
  alignas(64) std::atomic<std::uint64_t> read{0};
  std::atomic<std::uint64_t> taken{0};      // Parcels: before the listener has them,
  std::atomic<std::uint64_t> delivered{0};  // and afterwards.
  std::atomic<std::uint32_t> receiver_sleeps{1};
  std::atomic<std::uint32_t> receiver_closed{0};
  alignas(64) std::atomic<std::uint64_t> returned{0};  // Slots.
  alignas(64) std::array<std::atomic<std::uint32_t>, most_out> returns{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct ShmRecord {
  std::uint64_t bytes = 0;              // Of all the record, this included; a multiple of 8.
  std::uint32_t shared_slot = no_slot;  // Of the tensors that were not lent.
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
  /// Whether it is as long as the bound wants it, and nobody can make it shorter.
  static bool is_sane(const Descriptor& file, Bound bound);

  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  const Descriptor& file() const { return file_; }
  ShmControl& control() { return *reinterpret_cast<ShmControl*>(memory_); }
  std::byte* memory() { return memory_; }
  std::size_t bytes() const { return bytes_; }

  /// Where the regions begin.
  std::size_t held() const { return held_; }
  std::size_t passing() const { return passing_; }

  /// Bytes of the ring, around its end.
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
