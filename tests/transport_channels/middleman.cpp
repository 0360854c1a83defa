#include "middleman.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "transport/channels/socket.h"

namespace troupe::transport {
namespace {

void send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    pollfd room{socket, POLLOUT, 0};
    if (sent < 0 && (errno != EAGAIN || poll(&room, 1, 60'000) <= 0)) return;
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

}  // namespace

Middleman::Middleman(std::string door, std::optional<Window> forth, std::optional<Window> back)
    : door_(std::move(door)),
      listening_(listen_at(tcp_address("127.0.0.1:0").value()).value()),
      forth_{std::move(forth), 0, {}},
      back_{std::move(back), 0, {}},
      thread_([this] { serve(); }) {}

Middleman::~Middleman() {
  shutdown(listening_.number(), SHUT_RDWR);
  thread_.join();
}

std::string Middleman::address() const { return to_text(address_of(listening_)); }

Middleman::Bytes Middleman::said() const {
  const std::lock_guard lock(mutex_);
  return said_;
}

void Middleman::serve() {
  pollfd knocks{listening_.number(), POLLIN, 0};
  if (poll(&knocks, 1, 60'000) <= 0) return;
  const Descriptor sender(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!sender) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto receiver = connect_to(tcp_address(door_).value(), until);
  if (!receiver) return;
  std::array<pollfd, 2> ends{{{sender.number(), POLLIN, 0}, {receiver->number(), POLLIN, 0}}};
  while (poll(ends.data(), ends.size(), 60'000) > 0) {
    if (ends[0].revents != 0 && !pass_on(sender.number(), receiver->number(), forth_)) return;
    if (ends[1].revents != 0 && !pass_on(receiver->number(), sender.number(), back_)) return;
  }
}

bool Middleman::pass_on(int from, int to, Direction& direction) {
  std::array<std::byte, 65536> some;
  const auto came = recv(from, some.data(), some.size(), MSG_DONTWAIT);
  if (came <= 0) return came < 0 && errno == EAGAIN;
  auto bytes = std::span<const std::byte>(some).first(static_cast<std::size_t>(came));
  if (&direction == &forth_) {
    const std::lock_guard lock(mutex_);
    said_.insert(said_.end(), bytes.begin(), bytes.end());
  }
  auto& [window, passed, held] = direction;
  if (!window) {
    send_all(to, bytes);
    return true;
  }
  const auto before = std::min(bytes.size(), window->begin - passed);
  send_all(to, bytes.first(before));
  passed += before;
  held.insert(held.end(), bytes.begin() + static_cast<std::ptrdiff_t>(before), bytes.end());
  if (held.size() < window->size) return true;
  Bytes within(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(window->size));
  window->change(within);
  send_all(to, within);
  if (window->then_hang_up) return false;
  send_all(to, std::span<const std::byte>(held).subspan(window->size));
  window.reset();
  return true;
}

}  // namespace troupe::transport
