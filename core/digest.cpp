#include "core/digest.h"

#ifdef XXHASH_CHOOSES_INSTRUCTIONS
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <charconv>
#include <cstdio>
#include <system_error>

namespace troupe {
namespace {
Digest from(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }
}  // namespace

std::string to_string(const Digest& digest) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest.high),
                static_cast<unsigned long long>(digest.low));
  return text;
}

bool from_text(std::string_view text, Digest& into) {
  if (text.size() != 32) return false;
  const auto read = [](std::string_view digits, std::uint64_t& number) {
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  return read(text.substr(0, 16), into.high) && read(text.substr(16), into.low);
}

Digest digest_of(std::span<const std::byte> bytes) {
  return from(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest_of(const std::string& text) {
  return digest_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t before) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), before);
}

struct Digester::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Digester::Digester() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Digester::~Digester() = default;
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;

void Digester::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

Digest Digester::finish() const { return from(XXH3_128bits_digest(state_->xxh)); }

}  // namespace troupe
