#include "bench/page_viewers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds looks_every = std::chrono::seconds(2);
constexpr int looks_per_about = 15;  // A page asks for it every 30 seconds.

/// A socket that is closed at the end.
class Socket {
 public:
  Socket() : id_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() { close(id_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int id() const { return id_; }

 private:
  int id_;
};

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Puts the calling thread on the last of its cores.
void use_last_core() {
  cpu_set_t all, last;
  CPU_ZERO(&last);
  sched_getaffinity(0, sizeof all, &all);
  for (int core = CPU_SETSIZE - 1; core >= 0; --core)
    if (CPU_ISSET(core, &all)) {
      CPU_SET(core, &last);
      break;
    }
  sched_setaffinity(0, sizeof last, &last);
}

}  // namespace

int free_port() {
  const Socket probe;
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(probe.id(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(probe.id(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

PageViewers::PageViewers(int port, int viewers, std::string run)
    : port_(port),
      run_(std::move(run)),
      thread_([this, viewers](const std::stop_token& ended) { watch(ended, viewers); }) {}

PageViewers::~PageViewers() = default;

/// The viewers' questions are spread over the time between two questions of one viewer.
void PageViewers::watch(const std::stop_token& ended, int viewers) {
  use_last_core();
  if (viewers == 0) return;
  std::mutex mutex;
  std::condition_variable_any wakes;
  std::unique_lock lock(mutex);
  auto next = Clock::now();
  for (std::int64_t question = 0; !ended.stop_requested(); ++question) {
    const auto looks_before = question / viewers;
    // The first looks of two viewers differ, so that they do not ask all at once.
    look((looks_before + question) % looks_per_about == 0);
    next += looks_every / viewers;
    wakes.wait_until(lock, ended, next, [] { return false; });
  }
}

void PageViewers::look(bool with_about) {
  ask("/api/status");
  ask("/api/runs/" + run_);
  if (with_about) ask("/api/runs/" + run_ + "/about");
}

void PageViewers::ask(const std::string& path) {
  const Socket socket;
  const auto address = loopback(port_);
  const std::string question =
      "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\n\r\n";
  bool is_good =
      connect(socket.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(socket.id(), question.data(), question.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(question.size());
  std::string begin;
  std::int64_t bytes = 0;
  std::array<char, 65536> part{};
  while (is_good) {
    const auto got = recv(socket.id(), part.data(), part.size(), 0);
    if (got <= 0) break;
    if (bytes == 0) begin.assign(part.data(), static_cast<std::size_t>(got));
    bytes += got;
  }
  is_good = is_good && begin.starts_with("HTTP/1.1 200 ");
  bytes_ += bytes;
  ++(is_good ? answers_ : failed_);
}

}  // namespace troupe::bench
