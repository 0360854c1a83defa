#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/threads/event_fd.h"

namespace troupe::apps {

/// The place of a web server's pages: "http://collector:4318/otlp".
struct HttpAddress {
  std::string host;  // A name or an address, without brackets.
  int port = 0;
  std::string path;  // Before that of each request; empty, or "/..." without a slash at its end.

  /// `usual_port` is for a text without a port. Fails for https.
  static Result<HttpAddress> parse(const std::string& text, int usual_port);
  /// Returns "http://collector:4318/otlp".
  std::string text() const;
  /// Returns "collector:4318", with brackets around an IPv6 address.
  std::string machine() const;
};

struct HttpReply {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after;
  std::string body;  // At most 64 KiB of it.
};

/// The end of all waits of a request. It may come earlier than it first said: then `bell` rings.
struct HttpPatience {
  std::function<std::chrono::steady_clock::time_point()> end;
  EventFd& bell;
};

/// Sends JSON and returns the reply. The look-up of a name has a limit of its own, which the system
/// sets.
Result<HttpReply> http_post(const HttpAddress& to, const std::string& path, const std::string& json,
                            const HttpPatience& patience);

}  // namespace troupe::apps
