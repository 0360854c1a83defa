#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// Proves that a head has led with a term. Heads that share a secret (their key, or a file of their
/// user) can check each other's proofs; nodes and daemons only pass them on. Without proofs any
/// sender could tell a head that a newer head has taken its place.
class TermSeal {
 public:
  /// Makes a seal whose proofs no other head can check.
  TermSeal();
  /// Makes the seal of heads with keys, from the secret key in a key file.
  static TermSeal of_key(std::string_view secret_key);
  /// Makes the seal of heads without keys, from a secret file that only their user can read.
  /// Creates the file if needed.
  static Result<TermSeal> of_file(const std::string& path);

  /// Returns a text of 64 hexadecimal digits.
  std::string prove(std::uint64_t term) const;
  bool proves(std::uint64_t term, std::string_view proof) const;

 private:
  using Key = std::array<unsigned char, 32>;
  explicit TermSeal(const Key& key) : key_(key) {}

  Key key_;
};

}  // namespace troupe::transport
