#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "core/descriptor.h"
#include "core/result.h"
#include "transport/channels/door.h"
#include "transport/channels/frame.h"

/// What doors and connecting senders have in common. All sockets are non-blocking.
namespace troupe::transport {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// "10.0.0.7:4711", "[fe80::1]:4711"
Result<SocketAddress> tcp_address(const std::string& text);
std::string to_text(const SocketAddress& tcp);
/// Whether it is an address by which a machine reaches only itself.
bool is_loopback(const SocketAddress& tcp);
/// A Unix socket's name in the namespace that has no files.
Result<SocketAddress> unix_address(const std::string& name);
/// One that nobody has, and nobody guesses.
Result<std::string> make_up_unix_name();

Result<Descriptor> listen_at(const SocketAddress& address);
SocketAddress address_of(const Descriptor& socket);
/// Of the other end.
SocketAddress peer_address_of(const Descriptor& socket);

using SocketDeadline = std::chrono::steady_clock::time_point;
Result<Descriptor> connect_to(const SocketAddress& address, SocketDeadline deadline);

Hello hello_of(const Sending& sending, Carrier carrier, Checksums checksums);

/// What a sender says at a door, and what it hears if it is let in.
struct Knocking {
  std::span<const std::byte> hello;  // With all that belongs behind it.
  const Descriptor* file = nullptr;  // That goes along.
  std::span<std::byte> greeting;     // Filled with what follows a welcome.
};
/// Knocks, and waits for the verdict.
Status be_let_in(const Descriptor& socket, const Knocking& knocking, SocketDeadline deadline);

/// As sendmsg(), in one message; the file goes with its first byte, if there is one.
ssize_t send_with_file(int socket, std::span<iovec> parts, const Descriptor& file);

/// As recv(); a file that comes along is put into `file`, and further ones are closed.
ssize_t receive_with_file(int socket, std::span<std::byte> to, Descriptor& file);

/// Small TCP packets go at once.
void send_without_delay(const Descriptor& socket);

/// How long the other end of a TCP channel may acknowledge nothing before the channel is lost.
constexpr std::chrono::milliseconds path_patience{2000};
/// Ends the connection with ETIMEDOUT if its other end acknowledges neither data nor probes.
void notice_lost_path(const Descriptor& socket);

/// Sends at once what fits, without a signal where the peer is gone.
ssize_t send_now(int socket, std::span<const std::byte> bytes);

/// A byte wakes whoever looks at the other end; one that cannot be sent has many before it.
void ring_bell(int socket);
/// False once the other end is gone.
bool drain_bells(int socket);

/// "... : Connection refused"
Error system_error(const std::string& what);

}  // namespace troupe::transport
