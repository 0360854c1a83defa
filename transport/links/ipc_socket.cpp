#include "transport/links/ipc_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/channels/socket.h"

namespace troupe::transport {
namespace {

constexpr std::uint32_t ipc_magic = 0x49505254;  // "TRPI"

/// The part of a word before its ranges.
struct IpcHead {
  std::uint32_t magic = ipc_magic;
  IpcKind kind = IpcKind::opening;
  std::uint64_t number = 0;
};
static_assert(sizeof(IpcHead) == 16 && sizeof(MemoryRange) == 16);

constexpr int most_who_wait = 8;
constexpr std::size_t most_word_bytes = sizeof(IpcHead) + most_ipc_ranges * sizeof(MemoryRange);

// SOCK_SEQPACKET keeps words whole and in order, and a file stays with its word.
Result<Descriptor> open_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("cannot make a socket");
  return socket;
}

const sockaddr* where_of(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

/// Checks the user, since everybody can see names of abstract sockets.
bool is_of_this_user(const Descriptor& socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == geteuid();
}

}  // namespace

Result<NamedSocket> listen_for_ipc() {
  auto name = make_up_unix_name();
  if (!name) return name.error();
  const auto address = unix_address(*name);
  if (!address) return address.error();
  auto socket = open_socket();
  if (!socket) return socket.error();
  if (bind(socket->number(), where_of(*address), address->size) != 0 ||
      listen(socket->number(), most_who_wait) != 0)
    return system_error("cannot listen for the other end of a link");
  return NamedSocket{std::move(*name), std::move(*socket)};
}

Descriptor accept_ipc(const Descriptor& listening) {
  for (;;) {
    Descriptor socket(accept4(listening.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket || is_of_this_user(socket)) return socket;
  }
}

Result<Descriptor> connect_ipc(const std::string& name) {
  const auto address = unix_address(name);
  if (!address) return address.error();
  auto socket = open_socket();
  if (!socket) return socket.error();
  if (connect(socket->number(), where_of(*address), address->size) != 0)
    return system_error("cannot reach the other end of a link");
  if (!is_of_this_user(*socket)) return Error{"the other end of a link is another user's"};
  return socket;
}

IpcSocket::IpcSocket(Descriptor socket) : socket_(std::move(socket)) {}

void IpcSocket::say(IpcWord word) {
  assert(word.ranges.size() <= most_ipc_ranges);
  line_.push_back(std::move(word));
  send_line();
}

void IpcSocket::send_line() {
  while (!line_.empty() && send_first()) line_.pop_front();
}

/// Sends the first queued word. Returns false if there is no room. A word to a dead peer is
/// dropped.
bool IpcSocket::send_first() {
  const auto& word = line_.front();
  const IpcHead head{.kind = word.kind, .number = word.number};
  const std::size_t bytes = word.ranges.size() * sizeof(MemoryRange);
  iovec parts[2] = {{const_cast<IpcHead*>(&head), sizeof head},
                    {const_cast<MemoryRange*>(word.ranges.data()), bytes}};
  if (send_with_file(socket_.number(), parts, word.file) >= 0) return true;
  // The system limits files in flight: the other end must take some first.
  return errno != EAGAIN && errno != EINTR && errno != ENOBUFS && errno != ETOOMANYREFS;
}

Result<std::optional<IpcWord>> IpcSocket::hear() {
  send_line();
  bytes_.resize(most_word_bytes + 1);  // A longer word is cut off and detected below.
  IpcWord word;
  ssize_t came = 0;
  do {
    came = receive_with_file(socket_.number(), bytes_, word.file);
    // A peer that hung up with unread words causes one ECONNRESET before its own words can be read.
  } while (came < 0 && (errno == EINTR || errno == ECONNRESET));
  if (came <= 0) return std::optional<IpcWord>();
  const auto size = static_cast<std::size_t>(came);
  IpcHead head;
  const Error strange{"the other end of a link says what has no meaning"};
  if (size < sizeof head || size > most_word_bytes ||
      (size - sizeof head) % sizeof(MemoryRange) != 0)
    return strange;
  std::memcpy(&head, bytes_.data(), sizeof head);
  if (head.magic != ipc_magic || head.kind < IpcKind::opening || head.kind > IpcKind::taken)
    return strange;
  word.kind = head.kind;
  word.number = head.number;
  word.ranges.resize((size - sizeof head) / sizeof(MemoryRange));
  if (!word.ranges.empty())
    std::memcpy(word.ranges.data(), bytes_.data() + sizeof head, size - sizeof head);
  return std::optional(std::move(word));
}

bool IpcSocket::is_gone() const {
  pollfd what{socket_.number(), POLLRDHUP, 0};
  return poll(&what, 1, 0) > 0;
}

}  // namespace troupe::transport
