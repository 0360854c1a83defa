#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "transport/control/control_socket.h"
#include "transport/keys/keys.h"

namespace troupe::transport {

/// An address to listen at or to dial: "tcp://10.0.0.1:4711", "tcp://[::1]:0",
/// "ipc:///run/troupe/head".
struct Endpoint {
  enum class Kind { tcp, ipc };

  Kind kind = Kind::tcp;
  std::string host;  // For tcp; "*" is every interface. IPv6 has brackets.
  int port = 0;      // For tcp; 0 takes a free one.
  std::string path;  // For ipc.
};

Result<Endpoint> parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

/// Returns whether only programs of this machine can reach it.
bool is_local(const Endpoint& endpoint);

/// Fails if the path of an ipc endpoint is a file that is no socket, or a socket that somebody
/// listens on. A socket file left by a crash is fine: binding replaces it.
Status check_free(const Endpoint& endpoint);

/// Fails if plain messages would leave the machine without consent, or if keys are malformed.
Status check_security(const Endpoint& endpoint, const std::optional<KeyPair>& keys,
                      LinkOptions::Plain plain);

/// Explains an errno of bind(), and what to do about it.
Error bind_error(const Endpoint& endpoint, int number);

}  // namespace troupe::transport
