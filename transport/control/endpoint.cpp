#include "transport/control/endpoint.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace troupe::transport {
namespace {

constexpr std::string_view tcp_scheme = "tcp://";
constexpr std::string_view ipc_scheme = "ipc://";
constexpr int last_port = 65535;

Error not_an_address(std::string_view text, const std::string& why) {
  return {"\"" + std::string(text) + "\" is not an address: " + why +
          "; wanted tcp://HOST:PORT or ipc://PATH"};
}

sockaddr_un address_of_file(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Returns whether a program accepts connections at a socket file.
bool somebody_listens(const std::string& path) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const auto address = address_of_file(path);
  const int rc = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  // A full backlog means that somebody listens.
  const bool listens = rc == 0 || errno == EAGAIN;
  ::close(probe);
  return listens;
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  Endpoint endpoint;
  if (text.starts_with(ipc_scheme)) {
    endpoint.kind = Endpoint::Kind::ipc;
    endpoint.path = text.substr(ipc_scheme.size());
    if (endpoint.path.empty()) return not_an_address(text, "it has no path");
    constexpr std::size_t longest = sizeof(sockaddr_un{}.sun_path) - 1;
    if (endpoint.path.size() > longest)
      return not_an_address(text, "its path has " + std::to_string(endpoint.path.size()) +
                                      " bytes, and a socket's has at most " +
                                      std::to_string(longest));
    return endpoint;
  }
  if (!text.starts_with(tcp_scheme))
    return not_an_address(text, "it begins with neither tcp:// nor ipc://");
  const auto rest = text.substr(tcp_scheme.size());
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) return not_an_address(text, "it has no port");
  endpoint.host = rest.substr(0, colon);
  const auto port = rest.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.begin(), port.end(), endpoint.port);
  if (port == "*")
    endpoint.port = 0;
  else if (error != std::errc() || end != port.end() || endpoint.port < 0 ||
           endpoint.port > last_port)
    return not_an_address(text, "\"" + std::string(port) + "\" is no port");
  const bool bracketed = endpoint.host.starts_with('[') && endpoint.host.ends_with(']');
  if (endpoint.host.empty()) return not_an_address(text, "it has no host");
  if (!bracketed && endpoint.host.find(':') != std::string::npos)
    return not_an_address(text, "an IPv6 address stands in brackets");
  // Binding takes addresses and interfaces, not names.
  if (endpoint.host == "localhost") endpoint.host = "127.0.0.1";
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.kind == Endpoint::Kind::ipc) return std::string(ipc_scheme) + endpoint.path;
  return std::string(tcp_scheme) + endpoint.host + ":" + std::to_string(endpoint.port);
}

bool is_local(const Endpoint& endpoint) {
  return endpoint.kind == Endpoint::Kind::ipc || endpoint.host == "[::1]" ||
         (endpoint.host.starts_with("127.") &&
          endpoint.host.find_first_not_of("0123456789.") == std::string::npos);
}

Status check_free(const Endpoint& endpoint) {
  if (endpoint.kind != Endpoint::Kind::ipc) return Done{};
  struct stat facts {};
  if (::lstat(endpoint.path.c_str(), &facts) != 0) return Done{};
  if (!S_ISSOCK(facts.st_mode))
    return Error{to_string(endpoint) +
                 ": there is a file at this path that is no socket; take "
                 "another path, or remove it"};
  if (somebody_listens(endpoint.path)) return bind_error(endpoint, EADDRINUSE);
  return Done{};
}

Status check_security(const Endpoint& endpoint, const std::optional<KeyPair>& keys,
                      LinkOptions::Plain plain) {
  if (keys && (!is_key(keys->public_key) || !is_key(keys->secret_key)))
    return Error{to_string(endpoint) + ": the keys of this end are no CURVE keys"};
  if (keys || is_local(endpoint) || plain == LinkOptions::Plain::anywhere) return Done{};
  return Error{to_string(endpoint) +
               ": without keys everyone on the network could control this head; make keys with "
               "`troupe keys new`, or use 127.0.0.1 or ipc://"};
}

Error bind_error(const Endpoint& endpoint, int number) {
  const std::string where = to_string(endpoint) + ": ";
  const bool ipc = endpoint.kind == Endpoint::Kind::ipc;
  switch (number) {
    case EADDRINUSE:
      return {where + "another program listens there; stop it, or take another " +
              (ipc ? "path" : "port (0 takes a free one)")};
    case EACCES:
    case EPERM:
      return {where + "not permitted; " +
              (ipc ? "take a path in a directory that you may write to"
                   : "take a port of 1024 or more")};
    case ENODEV:
    case EADDRNOTAVAIL:
      return {where + "no network interface of this machine has this address; \"*\" takes all"};
    case ENOENT:
      return {where + "the directory does not exist; make it first"};
    default:
      return {where + "cannot listen: " + std::generic_category().message(number)};
  }
}

}  // namespace troupe::transport
