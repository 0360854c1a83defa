#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// A secret text that lets a visitor read something, as in "Authorization: Bearer TOKEN".
class AccessToken {
 public:
  /// Reads a file with one line: 16 to 512 printable characters without spaces. Rejects a file that
  /// anybody but its owner may read or write.
  static Result<AccessToken> read(const std::string& path);

  /// The time that this takes does not depend on the characters of either token.
  bool is(std::string_view token) const;

 private:
  explicit AccessToken(std::string token) : token_(std::move(token)) {}

  std::string token_;
};

}  // namespace troupe::transport
