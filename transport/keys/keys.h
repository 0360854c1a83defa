#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// The CURVE key pair that identifies a peer. Each key is a text of 40 characters (Z85).
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

Result<KeyPair> make_key_pair();

bool is_key(std::string_view text);

/// Writes a new file that only its owner may read (mode 0600). Fails if the file exists, because
/// its key may already identify somebody.
Status write_key_pair(const std::string& path, const KeyPair& keys);

/// Rejects a file that anybody but its owner may read or write, and keys that do not form a pair.
Result<KeyPair> read_key_pair(const std::string& path);

}  // namespace troupe::transport
