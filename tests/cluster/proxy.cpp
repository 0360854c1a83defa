#include "cluster/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "catch.h"

namespace troupe::tests {
namespace {

sockaddr_in local(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// Passes bytes on. Returns false at the end of the connection.
bool pass(int from, int to) {
  char bytes[65536];
  const auto count = recv(from, bytes, sizeof bytes, 0);
  for (ssize_t sent = 0; sent < count;) {
    const auto some = send(to, bytes + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
    if (some <= 0) return false;
    sent += some;
  }
  return count > 0;
}

}  // namespace

struct Proxy::Pair {
  int near = -1, far = -1;
};

Proxy::Proxy(const std::string& target)
    : target_port_(std::stoi(target.substr(target.rfind(':') + 1))) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = local(0);
  REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listener_, 16) == 0);
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  stop_ = true;
  cut();
  thread_.join();
  close(listener_);
}

void Proxy::cut() {
  cut_ = true;
  wake_.ring();
}

void Proxy::let_in() {
  Pair pair;
  pair.near = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  pair.far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto target = local(target_port_);
  if (connect(pair.far, reinterpret_cast<const sockaddr*>(&target), sizeof target) == 0) {
    pairs_.push_back(pair);
    return;
  }
  close(pair.near);
  close(pair.far);
}

void Proxy::run() {
  const auto end = [](const Pair& pair) {
    close(pair.near);
    close(pair.far);
    return true;
  };
  while (!stop_) {
    std::vector<pollfd> files = {{wake_.descriptor(), POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& pair : pairs_) {
      files.push_back({pair.near, POLLIN, 0});
      files.push_back({pair.far, POLLIN, 0});
    }
    poll(files.data(), files.size(), -1);
    wake_.clear();
    if (cut_.exchange(false)) {
      pairs_.remove_if(end);
      continue;
    }
    std::size_t at = 2;
    pairs_.remove_if([&](const Pair& pair) {
      const bool from_near = files[at].revents != 0, from_far = files[at + 1].revents != 0;
      at += 2;
      const bool lives =
          (!from_near || pass(pair.near, pair.far)) && (!from_far || pass(pair.far, pair.near));
      return !lives && end(pair);
    });
    if (files[1].revents != 0) let_in();
  }
  pairs_.remove_if(end);
}

}  // namespace troupe::tests
