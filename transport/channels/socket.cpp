#include "transport/channels/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "transport/channels/door_rules.h"

namespace troupe::transport {
namespace {

/// Returns false once the deadline has passed.
bool wait_until_ready(int socket, short events, SocketDeadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd what{socket, events, 0};
    const int ready =
        poll(&what, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000)));
    if (ready > 0) return true;
    if (left.count() <= 0) return false;
  }
}

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

Status send_hello(int socket, const Knocking& knocking, SocketDeadline deadline) {
  auto left = knocking.hello;
  const Descriptor none;
  const Descriptor* along = knocking.file ? knocking.file : &none;
  while (!left.empty()) {
    iovec part{const_cast<std::byte*>(left.data()), left.size()};
    const auto sent = send_with_file(socket, std::span(&part, 1), *along);
    if (sent > 0) {
      left = left.subspan(static_cast<std::size_t>(sent));
      along = &none;
    } else if (!try_again()) {
      return system_error("cannot send the greeting");
    } else if (!wait_until_ready(socket, POLLOUT, deadline)) {
      return Error{"did not accept the greeting in time"};
    }
  }
  return Done{};
}

Status receive_all(int socket, std::span<std::byte> bytes, SocketDeadline deadline) {
  for (std::size_t got = 0; got < bytes.size();) {
    const auto came = recv(socket, bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
    if (came > 0) {
      got += static_cast<std::size_t>(came);
    } else if (came == 0) {
      return Error{"closed the connection without an answer"};
    } else if (!try_again()) {
      return system_error("no answer to the greeting");
    } else if (!wait_until_ready(socket, POLLIN, deadline)) {
      return Error{"no answer to the greeting in time"};
    }
  }
  return Done{};
}

}  // namespace

Error system_error(const std::string& what) {
  return {what + ": " + std::generic_category().message(errno)};
}

Result<SocketAddress> tcp_address(const std::string& text) {
  const Error error{"\"" + text +
                    "\" is no address: wanted one like 10.0.0.7:4711 or "
                    "[fe80::1]:4711, in numbers"};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return error;
  std::string host = text.substr(0, colon);
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, wrong] = std::from_chars(text.data() + colon + 1, end, port);
  if (wrong != std::errc() || stopped != end) return error;
  SocketAddress address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.size = sizeof *six;
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) != 1) return error;
    return address;
  }
  auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
  four->sin_family = AF_INET;
  four->sin_port = htons(port);
  address.size = sizeof *four;
  if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) != 1) return error;
  return address;
}

std::string to_text(const SocketAddress& tcp) {
  char host[INET6_ADDRSTRLEN] = {};
  if (tcp.storage.ss_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&tcp.storage);
    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(six->sin6_port));
  }
  const auto* four = reinterpret_cast<const sockaddr_in*>(&tcp.storage);
  inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(four->sin_port));
}

bool is_loopback(const SocketAddress& tcp) {
  if (tcp.storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&tcp.storage)->sin_addr.s_addr) >> 24 == 127;
  if (tcp.storage.ss_family != AF_INET6) return false;
  const auto& six = reinterpret_cast<const sockaddr_in6*>(&tcp.storage)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

Result<SocketAddress> unix_address(const std::string& name) {
  SocketAddress address;
  auto* local = reinterpret_cast<sockaddr_un*>(&address.storage);
  // An abstract address starts with a 0 byte and has no file.
  if (name.empty() || name.size() + 1 > sizeof local->sun_path)
    return Error{"\"" + name + "\" is no address of a door in this host"};
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<std::string> make_up_unix_name() {
  std::uint64_t random[2] = {};
  if (getrandom(random, sizeof random, 0) != sizeof random)
    return system_error("no random numbers");
  char name[64];
  std::snprintf(name, sizeof name, "troupe/%d/%016llx%016llx", static_cast<int>(getpid()),
                static_cast<unsigned long long>(random[0]),
                static_cast<unsigned long long>(random[1]));
  return std::string(name);
}

Result<Descriptor> listen_at(const SocketAddress& address) {
  Descriptor socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("cannot make a socket");
  // Allow a port whose last connections ended just now.
  const int yes = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0)
    return system_error("cannot have this address");
  if (listen(socket.number(), SOMAXCONN) != 0) return system_error("cannot listen there");
  return socket;
}

SocketAddress address_of(const Descriptor& socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

SocketAddress peer_address_of(const Descriptor& socket) {
  SocketAddress address;
  address.size = sizeof address.storage;
  getpeername(socket.number(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

Result<Descriptor> connect_to(const SocketAddress& address, SocketDeadline deadline) {
  Descriptor socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("cannot make a socket");
  const auto* where = reinterpret_cast<const sockaddr*>(&address.storage);
  if (connect(socket.number(), where, address.size) != 0) {
    // A Unix socket whose backlog is full fails with EAGAIN: retry.
    while (address.storage.ss_family == AF_UNIX && errno == EAGAIN &&
           std::chrono::steady_clock::now() < deadline) {
      poll(nullptr, 0, 1);
      if (connect(socket.number(), where, address.size) == 0) return socket;
    }
    if (errno != EINPROGRESS) return system_error("cannot connect");
    if (!wait_until_ready(socket.number(), POLLOUT, deadline))
      return Error{"cannot connect: no answer in time"};
    socklen_t size = sizeof errno;
    getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &errno, &size);
    if (errno != 0) return system_error("cannot connect");
  }
  return socket;
}

Status be_let_in(const Descriptor& socket, const Knocking& knocking, SocketDeadline deadline) {
  if (auto said = send_hello(socket.number(), knocking, deadline); !said) return said;
  Answer answer;
  const auto bytes = std::as_writable_bytes(std::span(&answer, 1));
  if (auto came = receive_all(socket.number(), bytes, deadline); !came) return came;
  if (answer.magic != hello_magic) return Error{"is not the listening port of a channel"};
  if (answer.verdict != Verdict::welcome) return Error{"rejected: " + to_text(answer.verdict)};
  return receive_all(socket.number(), knocking.greeting, deadline);
}

ssize_t send_with_file(int socket, std::span<iovec> parts, const Descriptor& file) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const int number = file.number();
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof number)] = {};
  if (file) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    auto* along = CMSG_FIRSTHDR(&message);
    along->cmsg_level = SOL_SOCKET;
    along->cmsg_type = SCM_RIGHTS;
    along->cmsg_len = CMSG_LEN(sizeof number);
    std::memcpy(CMSG_DATA(along), &number, sizeof number);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t receive_with_file(int socket, std::span<std::byte> to, Descriptor& file) {
  iovec part{to.data(), to.size()};
  alignas(cmsghdr) std::byte control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto came = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (came < 0) return came;
  for (auto* along = CMSG_FIRSTHDR(&message); along; along = CMSG_NXTHDR(&message, along)) {
    if (along->cmsg_level != SOL_SOCKET || along->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t files = (along->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < files; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(along) + i * sizeof number, sizeof number);
      Descriptor one(number);
      if (!file) file = std::move(one);
    }
  }
  return came;
}

void send_without_delay(const Descriptor& socket) {
  const int on = 1;
  setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::optional<PathFigures> path_of(int socket) {
  // These are in `tcp_info` of linux/tcp.h, which netinet/tcp.h lacks and clashes with.
  constexpr std::size_t bytes_acked = 120, min_rtt = 148, delivery_rate = 160, all = 168;
  constexpr std::uint64_t enough = 64 << 10;  // A first burst says little about the rate.
  std::array<std::byte, 512> info{};
  socklen_t size = info.size();
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, info.data(), &size) != 0 || size < all) return {};
  const auto number = [&](std::size_t offset, auto value) {
    std::memcpy(&value, info.data() + offset, sizeof value);
    return value;
  };
  const auto round_trip = number(min_rtt, std::uint32_t{});
  if (round_trip == 0 || round_trip == ~std::uint32_t{0}) return {};  // Nothing was acknowledged.
  PathFigures path{.latency = std::chrono::microseconds(round_trip) / 2., .bytes_per_second = {}};
  const auto rate = number(delivery_rate, std::uint64_t{});
  if (rate > 0 && number(bytes_acked, std::uint64_t{}) >= enough)
    path.bytes_per_second = static_cast<double>(rate);
  return path;
}

void notice_lost_path(const Descriptor& socket) {
  const int on = 1;
  const int seconds_idle = 1, seconds_between = 1;
  const auto patience = static_cast<int>(path_patience.count());
  const int number = socket.number();
  setsockopt(number, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(number, IPPROTO_TCP, TCP_KEEPIDLE, &seconds_idle, sizeof seconds_idle);
  setsockopt(number, IPPROTO_TCP, TCP_KEEPINTVL, &seconds_between, sizeof seconds_between);
  setsockopt(number, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

void ring_bell(int socket) {
  const std::byte bell{};
  send_now(socket, std::span(&bell, 1));
}

bool drain_bells(int socket) {
  std::array<std::byte, 256> bells;
  for (;;) {
    const auto came = recv(socket, bells.data(), bells.size(), MSG_DONTWAIT);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (came == 0) return false;
    if (static_cast<std::size_t>(came) < bells.size()) return true;
  }
}

ssize_t send_now(int socket, std::span<const std::byte> bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace troupe::transport
