#include "transport/channels/frame.h"

#include <cassert>
#include <cstring>

#include "core/digest.h"

namespace troupe::transport {
namespace {

std::span<const std::byte> bytes_of_header(const FrameHeader& header) {
  return std::as_bytes(std::span(&header, 1));
}

Error not_sane(const char* what, std::uint64_t found, std::uint64_t wanted) {
  return {std::string("a frame's ") + what + " is " + std::to_string(found) + ", wanted " +
          std::to_string(wanted)};
}
Error too_much(const char* what, std::uint64_t found, std::uint64_t most) {
  return {std::string("a frame has ") + std::to_string(found) + " " + what + ", at most " +
          std::to_string(most) + " may be"};
}

Result<TensorPlan> plan_of(const TensorRecord& record) {
  if (record.type > static_cast<std::uint32_t>(DType::u16))
    return Error{"a tensor's element type is " + std::to_string(record.type) + ", which is none"};
  if (record.rank > Shape::max_rank) return too_much("dimensions", record.rank, Shape::max_rank);
  TensorPlan plan;
  plan.type = static_cast<DType>(record.type);
  // The product must not overflow even if it contains a zero.
  std::uint64_t bytes = troupe::bytes_of(plan.type), without_zeros = bytes;
  for (std::uint32_t i = 0; i < Shape::max_rank; ++i) {
    const std::int64_t size = record.sizes[i];
    if (i >= record.rank) {
      if (size != 0) return not_sane("unused dimension", static_cast<std::uint64_t>(size), 0);
      continue;
    }
    const auto factor = static_cast<std::uint64_t>(size);
    if (size < 0 || __builtin_mul_overflow(without_zeros, size == 0 ? 1 : factor, &without_zeros) ||
        without_zeros > (std::uint64_t{1} << 62))
      return Error{"a tensor's dimensions have no product: one is " + std::to_string(size)};
    bytes *= factor;
    plan.shape.append(size);
  }
  if (bytes != record.bytes) return not_sane("tensor", record.bytes, bytes);
  plan.bytes = bytes;
  return plan;
}

}  // namespace

std::size_t payload_bytes_of(std::span<const Tensor> tensors) {
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += aligned(tensor.bytes());
  return bytes;
}

void write_front(std::span<const std::byte> head, std::span<const Tensor> tensors,
                 std::vector<std::byte>& bytes) {
  FrameHeader header;
  header.head_bytes = static_cast<std::uint32_t>(head.size());
  header.tensors = static_cast<std::uint32_t>(tensors.size());
  header.payload_bytes = payload_bytes_of(tensors);
  bytes.resize(sizeof header + head.size() + tensors.size() * sizeof(TensorRecord));
  std::byte* to = bytes.data();
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  to += head.size();
  for (const auto& tensor : tensors) {
    TensorRecord record;
    record.bytes = tensor.bytes();
    record.type = static_cast<std::uint32_t>(tensor.dtype());
    record.rank = static_cast<std::uint32_t>(tensor.shape().rank());
    for (int i = 0; i < tensor.shape().rank(); ++i)
      record.sizes[static_cast<std::size_t>(i)] = tensor.shape()[i];
    std::memcpy(to, &record, sizeof record);
    to += sizeof record;
  }
}

void number_front(std::span<std::byte> front, std::uint64_t epoch, std::uint64_t sequence,
                  Checksums checksums) {
  FrameHeader header;
  std::memcpy(&header, front.data(), sizeof header);
  header.epoch = epoch;
  header.sequence = sequence;
  if (checksums == Checksums::on)
    header.checksum =
        checksum_of(front.subspan(sizeof header), checksum_of(bytes_of_header(header)));
  std::memcpy(front.data(), &header, sizeof header);
}

Result<std::size_t> check_header(const FrameHeader& header, const Expected& expected) {
  if (header.magic != frame_magic) return not_sane("magic", header.magic, frame_magic);
  if (header.kind != FrameKind::parcel && header.kind != FrameKind::goodbye)
    return not_sane("kind", static_cast<std::uint64_t>(header.kind),
                    static_cast<std::uint64_t>(FrameKind::parcel));
  if (header.epoch != expected.epoch) return not_sane("epoch", header.epoch, expected.epoch);
  if (header.sequence != expected.sequence)
    return not_sane("number", header.sequence, expected.sequence);
  if (header.head_bytes > most_head_bytes)
    return too_much("bytes of head", header.head_bytes, most_head_bytes);
  if (header.tensors > most_tensors) return too_much("tensors", header.tensors, most_tensors);
  // Padding between tensors may exceed the bound.
  const std::size_t most = expected.bound.bytes + header.tensors * payload_alignment;
  if (header.payload_bytes > most) return too_much("bytes of tensors", header.payload_bytes, most);
  return header.head_bytes + header.tensors * sizeof(TensorRecord);
}

Status check_records(const FrameHeader& header, std::span<const std::byte> front,
                     std::vector<TensorPlan>& plans) {
  assert(front.size() >= header.head_bytes + header.tensors * sizeof(TensorRecord));
  plans.clear();
  std::size_t offset = 0;
  for (std::size_t i = 0; i < header.tensors; ++i) {
    TensorRecord record;
    std::memcpy(&record, front.data() + header.head_bytes + i * sizeof record, sizeof record);
    auto plan = plan_of(record);
    if (!plan) return plan.error();
    if (plan->bytes > header.payload_bytes - offset)
      return not_sane("payload", header.payload_bytes, offset + plan->bytes);
    plan->offset = offset;
    offset += aligned(plan->bytes);
    if (offset > header.payload_bytes) return not_sane("payload", header.payload_bytes, offset);
    plans.push_back(*plan);
  }
  if (offset != header.payload_bytes) return not_sane("payload", header.payload_bytes, offset);
  return Done{};
}

Status check_front_checksum(FrameHeader header, std::span<const std::byte> front) {
  const auto found = std::exchange(header.checksum, 0);
  const auto wanted = checksum_of(front, checksum_of(bytes_of_header(header)));
  if (found != wanted) return not_sane("checksum", found, wanted);
  return Done{};
}

}  // namespace troupe::transport
