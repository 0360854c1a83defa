#include "transport/control/far_user.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "core/descriptor.h"

namespace troupe::transport {
namespace {

constexpr int most_looks = 8;

/// An end of a TCP connection, in network byte order like the kernel's tables.
struct TcpEnd {
  sa_family_t family = AF_UNSPEC;
  std::array<std::uint32_t, 4> address{};
  std::uint16_t port = 0;
};

TcpEnd tcp_end(const sockaddr_storage& storage) {
  TcpEnd end;
  end.family = storage.ss_family;
  if (storage.ss_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &storage, sizeof address);
    end.address[0] = address.sin_addr.s_addr;
    end.port = address.sin_port;
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &storage, sizeof address);
    std::memcpy(end.address.data(), &address.sin6_addr, sizeof address.sin6_addr);
    end.port = address.sin6_port;
  }
  return end;
}

/// The kernel's facts about a socket.
struct KnownSocket {
  std::uint8_t state = 0;
  std::uint32_t inode = 0;
  uid_t user = 0;
};

/// Returns the owner. A socket that nobody has open has no inode, and its listed user 0 is wrong.
std::optional<uid_t> owner_of(const KnownSocket& socket) {
  if (socket.state != TCP_ESTABLISHED || socket.inode == 0) return {};
  return socket.user;
}

enum class Asked { answered, in_vain };

/// Asks the kernel for the socket at `near` that is connected to `far` (sock_diag(7)).
Asked ask_kernel(const TcpEnd& near, const TcpEnd& far, std::optional<uid_t>& owner) {
  const Descriptor netlink(
      ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!netlink) return Asked::in_vain;
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 request{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  auto& request = question.request;
  request.sdiag_family = static_cast<std::uint8_t>(near.family);
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0u;
  request.id.idiag_sport = near.port;
  request.id.idiag_dport = far.port;
  std::memcpy(request.id.idiag_src, near.address.data(), sizeof request.id.idiag_src);
  std::memcpy(request.id.idiag_dst, far.address.data(), sizeof request.id.idiag_dst);
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(netlink.number(), &question, sizeof question, 0) !=
      static_cast<ssize_t>(sizeof question))
    return Asked::in_vain;
  // The kernel answers before send() returns.
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  const auto size = ::recv(netlink.number(), answer.data(), answer.size(), 0);
  nlmsghdr header{};
  if (size < static_cast<ssize_t>(sizeof header)) return Asked::in_vain;
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    // There is no such socket, or the kernel lacks the module: the error is the same.
    return Asked::in_vain;
  }
  inet_diag_msg told{};
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof told))
    return Asked::in_vain;
  std::memcpy(&told, answer.data() + NLMSG_HDRLEN, sizeof told);
  owner = owner_of({told.idiag_state, told.idiag_inode, told.idiag_uid});
  return Asked::answered;
}

/// Formats an end like /proc/net/tcp: "0100007F:1F90".
std::string in_table(const TcpEnd& end) {
  std::string text;
  for (int i = 0; i < (end.family == AF_INET ? 1 : 4); ++i) {
    std::array<char, 9> word{};
    std::snprintf(word.data(), word.size(), "%08X", end.address[static_cast<std::size_t>(i)]);
    text += word.data();
  }
  std::array<char, 6> port{};
  std::snprintf(port.data(), port.size(), ":%04X", ntohs(end.port));
  return text + port.data();
}

/// Looks the owner up in /proc, which every kernel has. Slower, since it lists all sockets.
std::optional<uid_t> look_up(const TcpEnd& near, const TcpEnd& far) {
  std::ifstream table(near.family == AF_INET ? "/proc/self/net/tcp" : "/proc/self/net/tcp6");
  const std::string near_text = in_table(near), far_text = in_table(far);
  std::string line;
  std::getline(table, line);  // The names of the columns.
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retries;
    KnownSocket socket;
    std::string timeout;
    words >> number >> local >> remote >> state >> queues >> timer >> retries >> socket.user >>
        timeout >> socket.inode;
    if (!words || local != near_text || remote != far_text) continue;
    socket.state = static_cast<std::uint8_t>(std::stoi(state, nullptr, 16));
    return owner_of(socket);
  }
  return {};
}

}  // namespace

std::optional<uid_t> user_at_far_end(int descriptor) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &here_size) != 0 ||
      ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&there), &there_size) != 0)
    return {};
  if (here.ss_family == AF_UNIX) {
    ucred owner{};
    socklen_t size = sizeof owner;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) return {};
    return owner.uid;
  }
  if (here.ss_family != AF_INET && here.ss_family != AF_INET6) return {};
  const auto far = tcp_end(there), near = tcp_end(here);
  std::optional<uid_t> owner;
  if (ask_kernel(far, near, owner) == Asked::answered) return owner;
  // The kernel supports the query, since it knows this end's socket; so the other one is gone.
  if (std::optional<uid_t> own; ask_kernel(near, far, own) == Asked::answered) return {};
  // The table is read in pieces: a line may be missed while sockets are opened and closed.
  for (int look = 0; look < most_looks && !owner; ++look) owner = look_up(far, near);
  return owner;
}

}  // namespace troupe::transport
