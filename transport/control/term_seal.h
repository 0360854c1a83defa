#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// Proves that a head has led with a term. Heads that share a secret (their key, or a file of their
/// user) can check each other's proofs; nodes and daemons only pass them on. Without this anybody
/// who may send a message could tell a head that a newer one has taken its place.
class TermSeal {
 public:
  /// Of a head alone: nobody else can check its proofs.
  TermSeal();
  /// Of heads with keys: from the secret key, as key files have it.
  static TermSeal of_key(std::string_view secret_key);
  /// Of heads without keys: from a secret that only their user can read, made at first use.
  static Result<TermSeal> of_file(const std::string& path);

  /// A text of 64 hexadecimal digits.
  std::string prove(std::uint64_t term) const;
  bool proves(std::uint64_t term, std::string_view proof) const;

 private:
  using Key = std::array<unsigned char, 32>;
  explicit TermSeal(const Key& key) : key_(key) {}

  Key key_;
};

}  // namespace troupe::transport
