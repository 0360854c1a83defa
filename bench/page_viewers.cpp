#include "bench/page_viewers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds looks_every = std::chrono::seconds(2);
constexpr int looks_per_about = 15;  // A page asks for it every 30 seconds.

/// A socket that is closed at the end.
class Socket {
 public:
  Socket() : Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Socket(int id) : id_(id) {}
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

/// Binds a socket to a free port of 127.0.0.1 and returns the port; 0 if that fails.
int bind_free(int socket) {
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

/// Asks for a path and calls `take` with each part of the answer. Returns false if it could not
/// ask.
template <class Take>
bool ask_page(int port, const std::string& path, Take take) {
  const Socket socket;
  const auto address = loopback(port);
  const std::string question =
      "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) + "\r\n\r\n";
  if (connect(socket.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      send(socket.id(), question.data(), question.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(question.size()))
    return false;
  std::array<char, 65536> part{};
  for (;;) {
    const auto got = recv(socket.id(), part.data(), part.size(), 0);
    if (got <= 0) return true;
    take(std::string_view(part.data(), static_cast<std::size_t>(got)));
  }
}

/// Returns what a viewer of the run asks for: each time, and seldom.
std::array<std::string, 2> questions_about(const std::string& run) {
  return {"/api/look?run=" + run, "/api/runs/" + run + "/about"};
}

}  // namespace

int free_port() {
  const Socket probe;
  return bind_free(probe.id());
}

StandIn::StandIn(int port, const std::string& run) {
  for (const auto& path : questions_about(run))
    (void)ask_page(port, path, [&](std::string_view part) { answers_[path] += part; });
  listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  port_ = bind_free(listening_);
  if (port_ != 0 && listen(listening_, SOMAXCONN) == 0) thread_ = std::jthread([this] { serve(); });
}

StandIn::~StandIn() {
  shutdown(listening_, SHUT_RDWR);  // Ends accept().
  if (thread_.joinable()) thread_.join();
  close(listening_);
}

void StandIn::serve() const {
  use_last_core();
  for (int visitor; (visitor = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    const Socket socket(visitor);
    std::array<char, 4096> text{};
    const auto got = recv(visitor, text.data(), text.size(), 0);
    const std::string question(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    const auto from = question.find(' ') + 1;
    const auto answer = answers_.find(question.substr(from, question.find(' ', from) - from));
    if (answer == answers_.end()) continue;
    for (std::string_view left = answer->second; !left.empty();) {
      const auto sent = send(visitor, left.data(), left.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      left.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
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
  const auto questions = questions_about(run_);
  for (const auto& path : std::span(questions).first(with_about ? 2 : 1)) ask(path);
}

void PageViewers::ask(const std::string& path) {
  std::string begin;
  std::int64_t bytes = 0;
  const bool has_asked = ask_page(port_, path, [&](std::string_view part) {
    if (bytes == 0) begin = part;
    bytes += static_cast<std::int64_t>(part.size());
  });
  bytes_ += bytes;
  ++(has_asked && begin.starts_with("HTTP/1.1 200 ") ? answers_ : failed_);
}

}  // namespace troupe::bench
