#include "bench/peers/plain_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/channels/socket.h"

namespace troupe::bench {
namespace {

/// Echoes data until the other end hangs up.
void echo(int socket) {
  std::uint64_t order[2];
  while (read_all(socket, order, sizeof order)) {
    std::vector<char> out(order[0]), in(order[0]);
    for (std::uint64_t turn = 0; turn < order[1]; ++turn)
      if (!read_all(socket, in.data(), in.size()) || !write_all(socket, out.data(), out.size()))
        return;
  }
}

}  // namespace

PlainPeer::PlainPeer(Descriptor own, Descriptor other) : socket_(std::move(own)), child_(fork()) {
  if (child_ != 0) return;
  socket_ = Descriptor();
  stay_on(1);
  echo(other.number());
  _exit(0);
}

PlainPeer::~PlainPeer() {
  hang_up(socket_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

Result<std::unique_ptr<PlainPeer>> PlainPeer::by_unix_socket() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return transport::system_error("no pair of sockets");
  return std::unique_ptr<PlainPeer>(new PlainPeer(Descriptor(ends[0]), Descriptor(ends[1])));
}

Result<std::unique_ptr<PlainPeer>> PlainPeer::by_tcp() {
  const Descriptor listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (bind(listening.number(), where, size) != 0 || listen(listening.number(), 1) != 0)
    return transport::system_error("cannot listen on the loopback interface");
  getsockname(listening.number(), where, &size);
  Descriptor own(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(own.number(), where, size) != 0)
    return transport::system_error("cannot connect over the loopback interface");
  Descriptor other(accept(listening.number(), nullptr, nullptr));
  for (const auto* one : {&own, &other}) transport::send_without_delay(*one);
  return std::unique_ptr<PlainPeer>(new PlainPeer(std::move(own), std::move(other)));
}

Result<double> PlainPeer::measure(const Size& size) {
  std::vector<char> out(size.bytes), in(size.bytes);
  const std::uint64_t order[2] = {size.bytes, static_cast<std::uint64_t>(size.turns) + 1};
  bool is_there = write_all(socket_.number(), order, sizeof order);
  std::chrono::steady_clock::time_point start;
  for (int turn = -1; turn < size.turns && is_there; ++turn) {
    if (turn == 0) start = std::chrono::steady_clock::now();
    is_there = write_all(socket_.number(), out.data(), out.size()) &&
               read_all(socket_.number(), in.data(), in.size());
  }
  if (!is_there) return Error{"the process at the other end of a plain socket has ended"};
  return seconds_since(start) / size.turns / 2;
}

}  // namespace troupe::bench
