#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "transport/control/control_socket.h"

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// The caller's key pair, and the key that it expects of the head.
struct DialKeys {
  std::string keys;      // A file of `troupe keys new`; empty for a plain connection.
  std::string head_key;  // The head's public key.

  void add_to(CLI::App& command);
  /// Returns the options to dial the head. Fails if a key cannot be read, or if only one of the two
  /// is given.
  Result<transport::DialOptions> dial(const std::string& endpoint) const;
};

}  // namespace troupe::apps
