#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/tensor.h"
#include "core/result.h"
#include "transport/channels/channel.h"

/// The byte format of a channel. A receiver trusts nothing: it checks each size before it allocates
/// memory for it.
namespace troupe::transport {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

constexpr std::uint64_t hello_magic = 0x6e616843'50525400;  // "\0TRPChan"
constexpr std::uint32_t frame_magic = 0x46505254;           // "TRPF"
constexpr std::uint32_t channel_version = 2;

enum class Carrier : std::uint32_t { tcp = 1, shm = 2 };

/// Whether the data after the hello and its answer is encrypted (key_agreement.h, record_seal.h).
enum class Protection : std::uint32_t { plain = 0, sealed = 1 };

/// The first message, from sender to receiver.
struct Hello {
  std::uint64_t magic = hello_magic;
  std::uint32_t version = channel_version;
  Carrier carrier = Carrier::tcp;
  std::array<std::uint64_t, 2> run{};
  std::uint64_t epoch = 0;
  std::uint64_t token = 0;
  std::uint64_t bytes = 0;  // The bound: bytes and parcels.
  std::uint64_t parcels = 0;
  std::uint32_t checksums = 0;
  Protection protection = Protection::plain;
};
static_assert(sizeof(Hello) == 72);

enum class Verdict : std::uint32_t {
  welcome = 1,
  other_version,
  other_run,
  other_epoch,
  unknown_token,
  other_terms,
  not_sealed,  // The receiver accepts only encrypted tensors.
  not_proved,  // The sender does not own the key that the receiver expects.
};

/// The receiver's reply to a hello.
struct Answer {
  std::uint64_t magic = hello_magic;
  Verdict verdict = Verdict::welcome;
  std::uint32_t zero = 0;
};
static_assert(sizeof(Answer) == 16);

enum class FrameKind : std::uint32_t { parcel = 1, goodbye = 2, arrived = 3 };

/// The start of every frame from sender to receiver. A parcel continues with its head, a
/// TensorRecord for each tensor, and the payload.
struct FrameHeader {
  std::uint32_t magic = frame_magic;
  FrameKind kind = FrameKind::parcel;
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;  // Counts from 0.
  std::uint32_t head_bytes = 0;
  std::uint32_t tensors = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;  // Over this header (with 0 here), the head and the records.
};
static_assert(sizeof(FrameHeader) == 48);

struct TensorRecord {
  std::uint64_t bytes = 0;
  std::uint32_t type = 0;
  std::uint32_t rank = 0;
  std::array<std::int64_t, Shape::max_rank> sizes{};
};
static_assert(sizeof(TensorRecord) == 80);

/// From receiver to sender: how many parcels the listener has received.
struct Arrived {
  std::uint32_t magic = frame_magic;
  FrameKind kind = FrameKind::arrived;
  std::uint64_t epoch = 0;
  std::uint64_t parcels = 0;
};
static_assert(sizeof(Arrived) == 24);

/// The alignment of each tensor in a payload.
constexpr std::size_t payload_alignment = 64;
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + payload_alignment - 1) / payload_alignment * payload_alignment;
}
std::size_t payload_bytes_of(std::span<const Tensor> tensors);

/// Writes a parcel's header, head and tensor records. Reuses the memory of `bytes`.
void write_front(std::span<const std::byte> head, std::span<const Tensor> tensors,
                 std::vector<std::byte>& bytes);
/// Completes a front once the parcel's sequence number is known.
void number_front(std::span<std::byte> front, std::uint64_t epoch, std::uint64_t sequence,
                  Checksums checksums);

/// A tensor record that has been checked.
struct TensorPlan {
  Shape shape;
  DType type = DType::f32;
  std::size_t bytes = 0;
  std::size_t offset = 0;  // From the start of the payload.
};

struct Expected {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  Bound bound;
};
/// The size of the records into which an encrypted payload is cut; the last one may be shorter. An
/// encrypted frame is a sequence of records, each followed by a tag: the header, then head and
/// tensor records together (if not empty), then the payload's records. An `Arrived` is one record.
constexpr std::size_t payload_record_bytes = std::size_t{128} << 10;
/// The error for a record that cannot be decrypted.
constexpr const char* not_as_sealed =
    "an encrypted record is not what the other end has sent: somebody changes, repeats or leaves "
    "out "
    "what travels between, or its host is broken";

/// Checks a header. Returns how many bytes precede the payload.
Result<std::size_t> check_header(const FrameHeader& header, const Expected& expected);
/// Checks the records in `front`, which has the length that check_header() returned and excludes
/// the header. Replaces `plans`.
Status check_records(const FrameHeader& header, std::span<const std::byte> front,
                     std::vector<TensorPlan>& plans);
Status check_front_checksum(FrameHeader header, std::span<const std::byte> front);

}  // namespace troupe::transport
