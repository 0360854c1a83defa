#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// 128 bits that tell contents apart (XXH3): against accidents, not against forgers.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const Digest&, const Digest&) = default;
};

/// 32 hexadecimal digits.
std::string to_string(const Digest& digest);
/// Whether a text is one.
bool from_text(std::string_view text, Digest& into);

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(const std::string& text);

/// 64 bits (XXH3) against accidents on the way. What comes in pieces is chained: the checksum of
/// the pieces before is the next one's `before`.
std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t before = 0);

/// The digest of what comes in pieces: equal to that of the whole.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;

  void add(std::span<const std::byte> bytes);
  Digest finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
