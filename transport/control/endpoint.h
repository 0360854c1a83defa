#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace troupe::transport {

/// Where a socket listens or dials: "tcp://10.0.0.1:4711", "tcp://[::1]:0",
/// "ipc:///run/troupe/head".
struct Endpoint {
  enum class Kind { tcp, ipc };

  Kind kind = Kind::tcp;
  std::string host;  // Of tcp; "*" is every interface. With brackets for IPv6.
  int port = 0;      // Of tcp; 0 takes a free one.
  std::string path;  // Of ipc.
};

Result<Endpoint> parse_endpoint(std::string_view text);
std::string to_string(const Endpoint& endpoint);

/// Whether only programs of this machine can reach it.
bool is_local(const Endpoint& endpoint);

/// An error where a file lies in the way: one that is no socket, or a socket that somebody listens
/// on. A socket file that a crash left behind is none: binding takes its place.
Status check_free(const Endpoint& endpoint);

/// In words what to do about an error (errno) of binding.
Error bind_error(const Endpoint& endpoint, int number);

}  // namespace troupe::transport
