#include <cstdlib>

#include "storage/checkpoint/manifest.h"

using namespace troupe;
using namespace troupe::storage;

/// Reads any bytes as the manifest of a checkpoint, with a valid digest: gives an error, or a
/// manifest that survives writing and reading.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t digits = 32;
  constexpr std::size_t after_digest = 4;
  if (size >= digits + after_digest) {
    const auto at = size - after_digest - digits;
    text.replace(at, digits, digits, '0');
    text.replace(at, digits, to_string(digest_of(text)));
  }
  const auto manifest = read_manifest(text);
  if (!manifest) {
    if (manifest.error().text.empty()) std::abort();
    return 0;
  }
  const auto again = read_manifest(write_manifest(*manifest));
  if (!again || again->weights_digest != manifest->weights_digest) std::abort();
  return 0;
}
