#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// A 128-bit digest (XXH3) of contents. It guards against accidents, not against forgers.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend bool operator==(const Digest&, const Digest&) = default;
};

/// Returns 32 hexadecimal digits.
std::string to_string(const Digest& digest);
/// Reads 32 hexadecimal digits. Returns false if `text` is anything else.
bool from_text(std::string_view text, Digest& into);

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(const std::string& text);

/// Returns a 64-bit checksum (XXH3) that detects transmission errors. For data in pieces, pass the
/// checksum of the previous pieces as `before`.
std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t before = 0);

/// The digest of data that arrives in pieces. It equals digest_of() the whole.
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
