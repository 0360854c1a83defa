#include "storage/data/idx.h"

#include <limits>

namespace troupe::storage {
namespace {

constexpr std::uint8_t unsigned_bytes = 0x08;

/// Reads a number of the header, which is big-endian.
std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = (value << 8) | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

}  // namespace

Result<IdxArray> IdxArray::open(Files& files, const std::string& path) {
  auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  auto array = parse(std::move(*bytes));
  if (!array) return within(path, array.error());
  return array;
}

Result<IdxArray> IdxArray::parse(Bytes bytes) {
  const auto all = bytes.span();
  if (all.size() >= 2 && all[0] == std::byte{0x1f} && all[1] == std::byte{0x8b})
    return Error{"is compressed; unpack it first (gunzip)"};
  if (all.size() < 4 || all[0] != std::byte{0} || all[1] != std::byte{0})
    return Error{"is no IDX file: it does not begin with two zero bytes, a type and a rank"};
  if (all[2] != std::byte{unsigned_bytes})
    return Error{"has elements of type " + std::to_string(std::to_integer<int>(all[2])) +
                 "; only 8, unsigned bytes, is read"};
  const auto rank = std::to_integer<std::size_t>(all[3]);
  if (rank < 1 || rank > Shape::max_rank)
    return Error{"has " + std::to_string(rank) + " dimensions; 1 to " +
                 std::to_string(Shape::max_rank) + " are read"};
  const auto header_bytes = 4 + 4 * rank;
  if (all.size() < header_bytes) return Error{"is cut off within its header"};

  IdxArray array;
  const auto data = all.subspan(header_bytes);
  std::uint64_t wanted = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto size = read_u32(all, 4 + 4 * i);
    if (size == 0) return Error{"has a dimension of size 0"};
    if (__builtin_mul_overflow(wanted, std::uint64_t{size}, &wanted) || wanted > data.size())
      return Error{"has " + std::to_string(data.size()) +
                   " bytes of data, fewer than its dimensions need; it is cut off"};
    array.shape_.append(size);
  }
  if (wanted != data.size())
    return Error{"has " + std::to_string(data.size() - wanted) +
                 " bytes more than its dimensions need"};
  array.values_ = {reinterpret_cast<const std::uint8_t*>(data.data()), data.size()};
  array.bytes_ = std::move(bytes);
  return array;
}

Status write_idx(Files& files, const std::string& path, const Shape& shape,
                 std::span<const std::uint8_t> values) {
  assert(shape.rank() >= 1 && shape.count() == static_cast<std::int64_t>(values.size()));
  std::vector<std::byte> header = {std::byte{0}, std::byte{0}, std::byte{unsigned_bytes},
                                   static_cast<std::byte>(shape.rank())};
  for (const auto size : shape) {
    if (size > std::numeric_limits<std::uint32_t>::max())
      return Error{path + ": " + to_string(shape) + " is more than IDX can say"};
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<std::byte>(size >> shift));
  }
  return write_new_file(files, path, {header, std::as_bytes(values)});
}

}  // namespace troupe::storage
