#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// Who somebody is on the wire (CURVE). Both keys are texts of 40 characters (Z85).
struct KeyPair {
  std::string public_key;
  std::string secret_key;
};

Result<KeyPair> make_key_pair();

/// Whether a text looks like a key.
bool is_key(std::string_view text);

/// Writes a new file that its owner alone may read (mode 0600); one that is there already is an
/// error, as somebody may be known by it.
Status write_key_pair(const std::string& path, const KeyPair& keys);

/// Refuses a file that others than its owner may read or write, and keys that are no pair.
Result<KeyPair> read_key_pair(const std::string& path);

}  // namespace troupe::transport
