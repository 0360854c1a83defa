#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// The address at which a socket listens or dials: "tcp://10.0.0.1:4711", "tcp://[::1]:0",
/// "ipc:///run/troupe/head".
struct Endpoint {
  enum class Kind { tcp, ipc };

  Kind kind = Kind::tcp;
  std::string host;  // For tcp; "*" is every interface. IPv6 has brackets.
  int port = 0;      // For tcp; 0 takes a free port.
  std::string path;  // For ipc.
};

Result<Endpoint> parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

/// Whether only programs of this machine can reach it.
bool is_local(const Endpoint& endpoint);

/// Fails if a file is in the way: a file that is no socket, or a socket on which a process listens.
/// Binding replaces a socket file that a crash left behind.
Status check_free(const Endpoint& endpoint);

/// Says what to do about an error (errno) of bind().
Error bind_error(const Endpoint& endpoint, int number);

}  // namespace troupe::transport
