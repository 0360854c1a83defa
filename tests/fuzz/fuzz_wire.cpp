#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "transport/allocations.h"
#include "transport/wire/wire.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

/// The input: a byte, then for each part its size in two bytes and its bytes. If the first byte is
/// odd, the prelude gets the parts' real sizes, which a fuzzer would not guess.
std::vector<std::string> parts_of(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> parts;
  if (size == 0) return parts;
  const bool mended = data[0] & 1;
  for (std::size_t at = 1; at + 2 <= size;) {
    const std::size_t wanted = data[at] + std::size_t{256} * data[at + 1];
    at += 2;
    const std::size_t length = std::min(wanted, size - at);
    parts.emplace_back(reinterpret_cast<const char*>(data) + at, length);
    at += length;
  }
  if (mended && parts.size() >= 3 && parts[0].size() == 16)
    for (std::size_t i = 0; i < 4; ++i) {
      parts[0][8 + i] = static_cast<char>(parts[1].size() >> (8 * i) & 0xff);
      parts[0][12 + i] = static_cast<char>(parts[2].size() >> (8 * i) & 0xff);
    }
  return parts;
}

std::vector<std::string_view> views_of(const std::vector<std::string>& parts) {
  return {parts.begin(), parts.end()};
}

}  // namespace

/// Reads any parts as a message: gives an error, or a message that survives writing and reading.
/// Memory stays within its bound.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = parts_of(data, size);
  const auto views = views_of(parts);
  std::size_t bytes = 0;
  for (const auto view : views) bytes += view.size();

  const Allocations allocations;
  const auto message = decode(views);
  if (allocations.bytes() > 2 * bytes + (std::size_t{64} << 10)) std::abort();
  if (!message) {
    if (message.error().text.empty()) std::abort();
    return 0;
  }
  const auto written = encode(*message);
  if (!written) {
    // A four-byte float is written with eight bytes, and a type has a size bound.
    constexpr std::size_t within_any_bound = 512;
    if (parts[2].size() <= within_any_bound) std::abort();
    return 0;
  }
  const auto again = decode(views_of(*written));
  if (!again || again->type != message->type || again->seq != message->seq ||
      again->run != message->run || !(again->body == message->body) ||
      again->payload != message->payload)
    std::abort();
  return 0;
}
