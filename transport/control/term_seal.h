#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// Proves that a head has led with a term. Heads that share a secret (a key, or a file of their
/// user) can check each other's proofs; nodes and daemons only pass them on. Without proofs anybody
/// who may send a message could depose a head by claiming a newer term.
class TermSeal {
 public:
  /// For a head alone: nobody else can check its proofs.
  TermSeal();
  /// For heads with keys: uses the secret key in its text form.
  static TermSeal of_key(std::string_view secret_key);
  /// For heads without keys: uses a secret that only their user can read, made on first use.
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
