#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/descriptor.h"
#include "core/json.h"
#include "core/threads/event_fd.h"
#include "transport/channels/socket.h"

namespace troupe::tests {

/// A collector of OTLP over HTTP at a free port of this machine. It answers one request after
/// another.
class Collector {
 public:
  struct Request {
    std::string path;
    std::string head;
    Value body;  // Null if it is no JSON.
  };
  /// Returns the whole answer; nothing: it never answers. The collector's thread calls it.
  using Answer = std::function<std::string(const Request&)>;

  static std::string ok() { return with_status("200 OK"); }
  static std::string with_status(const std::string& status, const std::string& body = "{}",
                                 const std::string& headers = {}) {
    return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

  explicit Collector(Answer answer = [](const Request&) { return ok(); })
      : listening_(transport::listen_at(*transport::tcp_address("127.0.0.1:0")).value()),
        answer_(std::move(answer)),
        thread_([this] { serve(); }) {}
  ~Collector() {
    ends_.ring();
    thread_.join();
  }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Returns "http://127.0.0.1:4318".
  std::string address() const {
    return "http://" + transport::to_text(transport::address_of(listening_));
  }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// Waits for a request.
  void wait() { came_.wait(); }

 private:
  bool is_ready(int socket) {
    pollfd items[] = {{socket, POLLIN, 0}, {ends_.descriptor(), POLLIN, 0}};
    (void)poll(items, 2, -1);
    return items[1].revents == 0;
  }

  void serve() {
    std::vector<Descriptor> unanswered;
    while (is_ready(listening_.number())) {
      Descriptor visitor(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!visitor) continue;
      std::string text;
      std::array<char, 4096> bytes;
      while (!is_whole(text) && is_ready(visitor.number())) {
        const auto count = recv(visitor.number(), bytes.data(), bytes.size(), 0);
        if (count <= 0) break;
        text.append(bytes.data(), static_cast<std::size_t>(count));
      }
      if (!is_whole(text)) continue;
      const auto end = text.find("\r\n\r\n");
      auto body = parse_json(text.substr(end + 4));
      Request request{text.substr(5, text.find(' ', 5) - 5), text.substr(0, end + 2),
                      body ? std::move(*body) : Value()};
      const auto answer = answer_(request);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(std::move(request));
      }
      came_.ring();
      if (answer.empty())
        unanswered.push_back(std::move(visitor));
      else
        (void)send(visitor.number(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  static bool is_whole(const std::string& text) {
    const auto end = text.find("\r\n\r\n");
    const auto length = text.find("Content-Length: ");
    return end != text.npos && length < end &&
           text.size() >= end + 4 + std::stoul(text.substr(length + 16));
  }

  Descriptor listening_;
  const Answer answer_;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  EventFd came_, ends_;
  std::thread thread_;
};

}  // namespace troupe::tests
