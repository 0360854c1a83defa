#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/descriptor.h"
#include "core/descriptor_limit.h"
#include "core/result.h"
#include "core/threads/event_fd.h"

namespace troupe::apps {

/// A request up to the empty line after its headers.
class HttpRequest {
 public:
  /// `text` is empty if no whole request came in time.
  explicit HttpRequest(std::string text) : text_(std::move(text)) {}

  bool is_whole() const { return !text_.empty(); }
  std::string method() const;
  /// Returns the path without the question that may follow it.
  std::string path() const;
  /// Returns the values of a parameter in the question: "a" and "b" of "?run=a&run=b". They stay as
  /// they came: "%20" is no space.
  std::vector<std::string> parameters(std::string_view name) const;
  /// Returns the value of a header, whose name is in lower case.
  std::optional<std::string> header(std::string_view name) const;

 private:
  std::string first_line() const { return text_.substr(0, text_.find("\r\n")); }
  std::string target() const;

  std::string text_;
};

/// A text that many answers may share.
using SharedText = std::shared_ptr<const std::string>;

struct HttpAnswer {
  std::string head;              // Up to the empty line.
  std::vector<SharedText> body;  // One after the other.
};
/// Returns an answer. `status` is "200 OK" or the like. `headers` are whole lines with their ends.
HttpAnswer http_answer(const std::string& status, const std::string& type,
                       std::vector<SharedText> body, const std::string& headers = {});
HttpAnswer http_answer(const std::string& status, const std::string& type, std::string body,
                       const std::string& headers = {});

/// Returns whether the request's `Host` means this machine, or is missing. A foreign page's host
/// name that its owner resolves to 127.0.0.1 (DNS rebinding) does not.
bool asks_this_machine(const HttpRequest& request);

/// Answers GET and HEAD over HTTP. It serves one request after another, each within a second.
class HttpServer {
 public:
  /// Returns the answer to a GET. The server's thread calls it.
  using Answer = std::function<HttpAnswer(const HttpRequest&)>;

  /// Listens at "127.0.0.1:4702". Port 0 takes a free port. `name` names the thread.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address, const char* name,
                                                    Answer answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Returns "127.0.0.1:4702".
  std::string address() const;

 private:
  HttpServer(Descriptor listening, const char* name, Answer answer);
  void run(const char* name);
  void serve(const Descriptor& visitor) const;
  HttpAnswer answer_to(const HttpRequest& request) const;

  Descriptor listening_;
  SpareDescriptor spare_;
  Answer answer_;
  EventFd ends_;
  std::thread thread_;
};

}  // namespace troupe::apps
