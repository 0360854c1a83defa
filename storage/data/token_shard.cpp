#include "storage/data/token_shard.h"

#include <array>
#include <cassert>
#include <limits>

namespace troupe::storage {
namespace {

constexpr std::size_t header_integers = 256;
constexpr std::size_t header_bytes = header_integers * 4;

struct Layout {
  TokenShard::Width width;
  std::uint32_t magic, version;
  std::size_t bytes;
};
constexpr std::array<Layout, 2> layouts = {
    {{TokenShard::Width::bits16, 20240520, 1, 2}, {TokenShard::Width::bits32, 20240801, 7, 4}}};

const Layout& layout_of(TokenShard::Width width) {
  return layouts[width == TokenShard::Width::bits16 ? 0 : 1];
}

/// Reads a little-endian number of any alignment.
std::uint32_t read_integer(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;)
    value = (value << 8) | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

void append_integer(std::vector<std::byte>& out, std::uint32_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

}  // namespace

Result<TokenShard> TokenShard::open(Files& files, const std::string& path) {
  auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  auto shard = parse(std::move(*bytes));
  if (!shard) return within(path, shard.error());
  return shard;
}

Result<TokenShard> TokenShard::parse(Bytes bytes) {
  const auto all = bytes.span();
  if (all.size() < header_bytes)
    return Error{"is no token shard: it has " + std::to_string(all.size()) +
                 " bytes, and its header alone has " + std::to_string(header_bytes)};
  const auto magic = read_integer(all, 0, 4);
  const auto version = read_integer(all, 4, 4);
  const auto count = read_integer(all, 8, 4);
  for (const auto& layout : layouts) {
    if (layout.magic != magic) continue;
    if (layout.version != version)
      return Error{"has version " + std::to_string(version) + "; a shard with magic " +
                   std::to_string(magic) + " has version " + std::to_string(layout.version)};
    const auto wanted = header_bytes + std::uint64_t{count} * layout.bytes;
    if (all.size() != wanted)
      return Error{"has " + std::to_string(all.size()) + " bytes, but its header promises " +
                   std::to_string(count) + " tokens, which make " + std::to_string(wanted) +
                   (all.size() < wanted ? "; it is cut off" : "")};
    TokenShard shard;
    shard.bytes_ = std::move(bytes);
    shard.width_ = layout.width;
    shard.count_ = count;
    return shard;
  }
  return Error{"is no token shard: it begins with " + std::to_string(magic) +
               "; 20240520 (16 bits) or 20240801 (32 bits) was wanted"};
}

std::uint32_t TokenShard::operator[](std::int64_t i) const {
  assert(i >= 0 && i < count_);
  const auto size = layout_of(width_).bytes;
  return read_integer(bytes_.span(), header_bytes + static_cast<std::size_t>(i) * size, size);
}

Status write_token_shard(Files& files, const std::string& path, TokenShard::Width width,
                         std::span<const std::int32_t> tokens) {
  const auto& layout = layout_of(width);
  // llm.c reads the count as a signed integer.
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    return Error{path + ": " + std::to_string(tokens.size()) +
                 " tokens are more than a shard holds"};
  std::vector<std::byte> bytes;
  bytes.reserve(header_bytes + tokens.size() * layout.bytes);
  append_integer(bytes, layout.magic, 4);
  append_integer(bytes, layout.version, 4);
  append_integer(bytes, static_cast<std::uint32_t>(tokens.size()), 4);
  bytes.resize(header_bytes);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool fits = tokens[i] >= 0 && (width == TokenShard::Width::bits32 || tokens[i] <= 0xffff);
    if (!fits)
      return Error{path + ": token " + std::to_string(tokens[i]) + " at position " +
                   std::to_string(i) + " does not fit into " + std::to_string(8 * layout.bytes) +
                   " bits"};
    append_integer(bytes, static_cast<std::uint32_t>(tokens[i]), layout.bytes);
  }
  return write_new_file(files, path, {bytes});
}

}  // namespace troupe::storage
