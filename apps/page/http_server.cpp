#include "apps/page/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/threads/thread_name.h"
#include "transport/channels/socket.h"
#include "transport/control/endpoint.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

/// The limit for reading a request, and for writing an answer.
constexpr auto patience = std::chrono::milliseconds(500);
constexpr std::size_t most_request_bytes = 8192;
constexpr int pause_milliseconds = 100;
// A usual answer fits at once, so that no thread has to wait for its reader.
constexpr int send_buffer_bytes = 1 << 20;
constexpr std::size_t most_parts_at_once = 64;
// After this time the system forgets what the reader has not taken.
constexpr unsigned reader_patience_milliseconds = 2000;

/// Returns whether the socket becomes ready before `end`.
bool wait_for(int socket, short what, Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  pollfd item{socket, what, 0};
  return left.count() > 0 && poll(&item, 1, static_cast<int>(left.count())) > 0;
}

/// Reads up to the empty line. Returns nothing if it is late or too long.
std::string read_request(int socket, Clock::time_point end) {
  std::string request;
  std::array<char, 1024> bytes;
  while (request.size() < most_request_bytes) {
    const auto count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(socket, POLLIN, end)) break;
      continue;
    }
    if (count <= 0) break;
    request.append(bytes.data(), static_cast<std::size_t>(count));
    if (request.find("\r\n\r\n") != std::string::npos) return request;
  }
  return {};
}

/// Writes all parts, with one call if the socket takes them at once. Returns false if that lasts
/// until `end`, or fails.
bool write_all(int socket, const std::vector<std::string_view>& parts, Clock::time_point end) {
  std::vector<iovec> left;
  left.reserve(parts.size());
  for (const auto part : parts)
    if (!part.empty()) left.push_back({const_cast<char*>(part.data()), part.size()});
  std::size_t first = 0;
  while (first < left.size()) {
    msghdr message{};
    message.msg_iov = left.data() + first;
    message.msg_iovlen = std::min<std::size_t>(left.size() - first, most_parts_at_once);
    auto sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    while (sent > 0) {
      auto& part = left[first];
      const auto taken = std::min(static_cast<std::size_t>(sent), part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      sent -= static_cast<ssize_t>(taken);
      if (part.iov_len == 0) ++first;
    }
    if (first < left.size() && !wait_for(socket, POLLOUT, end)) return false;
  }
  return true;
}

std::string lowered(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace

std::string HttpRequest::method() const {
  const auto line = first_line();
  return line.substr(0, line.find(' '));
}

std::string HttpRequest::target() const {
  const auto line = first_line();
  const auto from = line.find(' ') + 1;
  return line.substr(from, line.find(' ', from) - from);
}

std::string HttpRequest::path() const {
  const auto all = target();
  return all.substr(0, all.find('?'));
}

std::vector<std::string> HttpRequest::parameters(std::string_view name) const {
  std::vector<std::string> values;
  const auto all = target();
  for (auto at = all.find('?'); at != all.npos; at = all.find('&', at + 1)) {
    const auto parameter = all.substr(at + 1, all.find('&', at + 1) - at - 1);
    if (parameter.size() > name.size() && parameter.starts_with(name) &&
        parameter[name.size()] == '=')
      values.push_back(parameter.substr(name.size() + 1));
  }
  return values;
}

std::optional<std::string> HttpRequest::header(std::string_view name) const {
  for (auto line = text_.find("\r\n"); line != text_.npos; line = text_.find("\r\n", line)) {
    line += 2;
    const auto end = text_.find("\r\n", line);
    const auto colon = text_.find(':', line);
    if (end == text_.npos || colon >= end) continue;
    if (lowered(std::string_view(text_).substr(line, colon - line)) != name) continue;
    const std::string value = text_.substr(colon + 1, end - colon - 1);
    const auto from = value.find_first_not_of(" \t");
    if (from == value.npos) return std::string();
    return value.substr(from, value.find_last_not_of(" \t") + 1 - from);
  }
  return {};
}

HttpAnswer http_answer(const std::string& status, const std::string& type,
                       std::vector<SharedText> body, const std::string& headers) {
  std::size_t size = 0;
  for (const auto& part : body) size += part->size();
  return {"HTTP/1.1 " + status + "\r\nContent-Type: " + type +
              "; charset=utf-8\r\nContent-Length: " + std::to_string(size) +
              "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n" + headers +
              "Connection: close\r\n\r\n",
          std::move(body)};
}

HttpAnswer http_answer(const std::string& status, const std::string& type, std::string body,
                       const std::string& headers) {
  return http_answer(status, type,
                     std::vector{std::make_shared<const std::string>(std::move(body))}, headers);
}

bool asks_this_machine(const HttpRequest& request) {
  const auto named = request.header("host");
  if (!named) return true;
  const std::string host = lowered(*named);
  const bool has_port =
      host.rfind(':') != host.npos && host.find(']', host.rfind(':')) == host.npos;
  const auto endpoint = transport::parse_endpoint("tcp://" + host + (has_port ? "" : ":80"));
  return endpoint && transport::is_local(*endpoint);
}

HttpServer::HttpServer(Descriptor listening, const char* name, Answer answer)
    : listening_(std::move(listening)),
      answer_(std::move(answer)),
      thread_([this, name] { run(name); }) {}

HttpServer::~HttpServer() {
  ends_.ring();
  thread_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address, const char* name,
                                                       Answer answer) {
  const auto where = transport::tcp_address(address);
  if (!where) return where.error();
  auto listening = transport::listen_at(*where);
  if (!listening) return listening.error();
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(*listening), name, std::move(answer)));
}

std::string HttpServer::address() const {
  return transport::to_text(transport::address_of(listening_));
}

void HttpServer::run(const char* name) {
  name_thread(name);
  for (;;) {
    pollfd items[] = {{listening_.number(), POLLIN, 0}, {ends_.descriptor(), POLLIN, 0}};
    (void)poll(items, 2, -1);
    if (items[1].revents != 0) return;
    if (items[0].revents == 0) continue;
    const Descriptor visitor(accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (visitor)
      serve(visitor);
    else if (SpareDescriptor::is_needed(errno) && !spare_.turn_away(listening_.number()))
      // The visitor waits. The pause avoids a busy loop.
      (void)poll(&items[1], 1, pause_milliseconds);
  }
}

void HttpServer::serve(const Descriptor& visitor) const {
  const HttpRequest request(read_request(visitor.number(), Clock::now() + patience));
  const auto answer = answer_to(request);
  std::vector<std::string_view> parts = {answer.head};
  if (request.method() != "HEAD")
    for (const auto& part : answer.body) parts.emplace_back(*part);
  const int socket = visitor.number();
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes, sizeof send_buffer_bytes);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &reader_patience_milliseconds,
                   sizeof reader_patience_milliseconds);
  const auto end = Clock::now() + patience;
  if (!write_all(socket, parts, end)) return;
  // Unread input would make close() reset the connection, which could discard the answer.
  std::array<char, 1024> rest;
  if (request.is_whole() && recv(socket, rest.data(), rest.size(), MSG_DONTWAIT) < 0) return;
  shutdown(socket, SHUT_WR);
  while (wait_for(socket, POLLIN, end) &&
         recv(socket, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
  }
}

HttpAnswer HttpServer::answer_to(const HttpRequest& request) const {
  if (!request.is_whole()) return http_answer("400 Bad Request", "text/plain", "no request came\n");
  const auto method = request.method();
  if (method != "GET" && method != "HEAD")
    return http_answer("405 Method Not Allowed", "text/plain", "this page only tells\n");
  return answer_(request);
}

}  // namespace troupe::apps
