#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "transport/control/control_socket.h"

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// Who somebody is who dials a head, and whom he expects there.
struct DialKeys {
  std::string keys;      // A file of `troupe keys new`; empty for a plain connection.
  std::string head_key;  // The head's public key.

  void add_to(CLI::App& command);
  /// How to dial that head. An error where a key cannot be read, or only one of two is given.
  Result<transport::DialOptions> dial(const std::string& endpoint) const;
};

}  // namespace troupe::apps
