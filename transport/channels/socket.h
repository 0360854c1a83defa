#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/descriptor.h"
#include "core/result.h"
#include "transport/channels/channel.h"
#include "transport/channels/door.h"
#include "transport/channels/frame.h"

/// Socket functions for doors and for connecting senders. All sockets are non-blocking.
namespace troupe::transport {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// Parses "10.0.0.7:4711" or "[fe80::1]:4711".
Result<SocketAddress> tcp_address(const std::string& text);
std::string to_text(const SocketAddress& tcp);
/// Returns whether an address is reachable from its own machine only.
bool is_loopback(const SocketAddress& tcp);
/// Returns the abstract Unix address of this name, which has no file.
Result<SocketAddress> unix_address(const std::string& name);
/// Makes up a unique name that nobody can guess.
Result<std::string> make_up_unix_name();

Result<Descriptor> listen_at(const SocketAddress& address);
SocketAddress address_of(const Descriptor& socket);
/// Returns the address of the other end.
SocketAddress peer_address_of(const Descriptor& socket);

using SocketDeadline = std::chrono::steady_clock::time_point;
Result<Descriptor> connect_to(const SocketAddress& address, SocketDeadline deadline);

/// The sender's side of the handshake at a door.
struct Knocking {
  std::span<const std::byte> hello;  // The hello and everything that follows it.
  const Descriptor* file = nullptr;  // A file descriptor to pass along.
  std::span<std::byte> greeting;     // Receives what follows a welcome.
};
/// Sends the hello and waits for the verdict.
Status be_let_in(const Descriptor& socket, const Knocking& knocking, SocketDeadline deadline);

/// Calls sendmsg() with one message; its first byte carries the file, if there is one.
ssize_t send_with_file(int socket, std::span<iovec> parts, const Descriptor& file);

/// Calls recvmsg(). Stores the first file that arrives in `file` and closes all further ones.
ssize_t receive_with_file(int socket, std::span<std::byte> to, Descriptor& file);

/// Disables Nagle's algorithm.
void send_without_delay(const Descriptor& socket);

/// How long the peer of a TCP channel may acknowledge nothing before the channel is lost.
constexpr std::chrono::milliseconds path_patience{2000};
/// Ends the connection with ETIMEDOUT if the peer acknowledges neither data nor probes in time.
void notice_lost_path(const Descriptor& socket);

/// Returns what the system has measured of a TCP connection; nothing if it does not tell.
std::optional<PathFigures> path_of(int socket);

/// Sends what fits now. Raises no SIGPIPE if the peer is gone.
ssize_t send_now(int socket, std::span<const std::byte> bytes);

/// Sends a byte that wakes the peer. If the socket is full, earlier bytes already wake it.
void ring_bell(int socket);
/// Returns false once the peer is gone.
bool drain_bells(int socket);

/// Returns "WHAT: Connection refused" or the like, from errno.
Error system_error(const std::string& what);

}  // namespace troupe::transport
