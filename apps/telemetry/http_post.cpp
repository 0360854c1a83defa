#include "apps/telemetry/http_post.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/descriptor.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_reply_bytes = std::size_t{64} << 10;
const char* const too_slow = "it did not answer in time";

/// Waits until the socket is ready. Returns false if the patience has ended.
bool wait_until_ready(int socket, short what, const HttpPatience& patience) {
  for (;;) {
    const auto left = patience.end() - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd items[] = {{socket, what, 0}, {patience.bell.descriptor(), POLLIN, 0}};
    (void)poll(items, 2, static_cast<int>(wait));
    if (items[0].revents != 0) return true;
    (void)patience.bell.clear();
  }
}

Error failed_with(int number) { return Error{std::strerror(number)}; }

Result<Descriptor> connect_within(const addrinfo& address, const HttpPatience& patience) {
  Descriptor connection(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) return failed_with(errno);
  if (connect(connection.number(), address.ai_addr, address.ai_addrlen) == 0) return connection;
  if (errno != EINPROGRESS) return failed_with(errno);
  if (!wait_until_ready(connection.number(), POLLOUT, patience)) return Error{too_slow};
  int number = 0;
  socklen_t size = sizeof number;
  getsockopt(connection.number(), SOL_SOCKET, SO_ERROR, &number, &size);
  if (number != 0) return failed_with(number);
  return connection;
}

/// Tries all addresses of the host.
Result<Descriptor> connect_to_host(const HttpAddress& to, const HttpPatience& patience) {
  addrinfo wanted{}, *answers = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int failed =
      getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &wanted, &answers);
  if (failed != 0) return Error{gai_strerror(failed)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(answers, freeaddrinfo);
  Result<Descriptor> connected = Error{"it has no address"};
  for (const auto* one = answers; one && !connected; one = one->ai_next)
    connected = connect_within(*one, patience);
  return connected;
}

Status send_all(int socket, std::string_view bytes, const HttpPatience& patience) {
  while (!bytes.empty()) {
    const auto sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return failed_with(errno);
    } else if (!wait_until_ready(socket, POLLOUT, patience)) {
      return Error{too_slow};
    }
  }
  return Done{};
}

/// Returns the value of a header in the head of a reply, whose header names are in lower case.
std::string header_in(std::string_view head, std::string_view name) {
  const auto at = head.find("\r\n" + std::string(name) + ":");
  if (at == head.npos) return {};
  auto value = head.substr(at + name.size() + 3);
  value = value.substr(0, value.find("\r\n"));
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  return std::string(value);
}

std::optional<std::size_t> number_at(std::string_view text, int base = 10) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (read.ec != std::errc() || read.ptr == text.data()) return {};
  return number;
}

/// Returns the body of chunks that have come.
std::string without_chunks(std::string_view text) {
  std::string body;
  for (auto end = text.find("\r\n"); end != text.npos; end = text.find("\r\n")) {
    const auto size = number_at(text.substr(0, end), 16);
    text.remove_prefix(end + 2);
    if (!size || *size == 0) break;
    body += text.substr(0, *size);
    text.remove_prefix(std::min(text.size(), *size + std::min<std::size_t>(2, text.size())));
  }
  return body;
}

/// A reply as far as it has come.
struct Coming {
  std::string text;
  bool has_ended = false;  // The server has closed the connection.

  /// Returns the reply once it is whole.
  std::optional<HttpReply> reply() const {
    const auto end = text.find("\r\n\r\n");
    if (end == text.npos) return {};
    std::string head = text.substr(0, end + 2);
    for (char& c : head)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const auto body = std::string_view(text).substr(end + 4);
    const bool is_chunked = header_in(head, "transfer-encoding").find("chunked") != head.npos;
    const auto length = number_at(header_in(head, "content-length"));
    const bool is_whole =
        has_ended || text.size() >= most_reply_bytes ||
        (is_chunked ? body.starts_with("0\r\n") || body.find("\r\n0\r\n") != body.npos
                    : length && body.size() >= *length);
    if (!is_whole) return {};
    HttpReply reply;
    const auto blank = head.find(' ');
    reply.status = static_cast<int>(
        number_at(std::string_view(head).substr(std::min(blank, head.size() - 1) + 1)).value_or(0));
    if (const auto seconds = number_at(header_in(head, "retry-after")))
      reply.retry_after = std::chrono::seconds(std::min<std::size_t>(*seconds, 3600));
    reply.body = is_chunked ? without_chunks(body) : std::string(body);
    return reply;
  }
};

Result<HttpReply> read_reply(int socket, const HttpPatience& patience) {
  Coming coming;
  std::array<char, 4096> bytes;
  for (;;) {
    if (auto reply = coming.reply()) {
      if (reply->status < 100) return Error{"it does not speak HTTP"};
      return std::move(*reply);
    }
    if (coming.has_ended) return Error{"it closed the connection without an answer"};
    if (coming.text.size() >= most_reply_bytes) return Error{"it does not speak HTTP"};
    if (!wait_until_ready(socket, POLLIN, patience)) return Error{too_slow};
    const auto count = recv(socket, bytes.data(), bytes.size(), 0);
    if (count > 0)
      coming.text.append(bytes.data(), static_cast<std::size_t>(count));
    else if (count == 0)
      coming.has_ended = true;
    else if (errno != EAGAIN && errno != EINTR)
      return failed_with(errno);
  }
}

}  // namespace

Result<HttpAddress> HttpAddress::parse(const std::string& text, int usual_port) {
  const std::string example = "http://collector:" + std::to_string(usual_port);
  const Error wrong{"found '" + text + "', wanted an address such as " + example};
  if (text.starts_with("https://"))
    return Error{"found '" + text +
                 "', but this program does not encrypt HTTP; give the http:// address of a "
                 "collector on this machine, which can pass everything on over https"};
  const std::string scheme = "http://";
  if (!text.starts_with(scheme)) return wrong;
  HttpAddress address;
  std::string machine = text.substr(scheme.size());
  if (const auto slash = machine.find('/'); slash != machine.npos) {
    address.path = machine.substr(slash);
    machine.resize(slash);
    while (address.path.ends_with('/')) address.path.pop_back();
  }
  address.port = usual_port;
  const auto colon = machine.rfind(':');
  if (colon != machine.npos && machine.find(']', colon) == machine.npos) {
    const auto port = std::string_view(machine).substr(colon + 1);
    const auto number = number_at(port);
    if (!number || port.find_first_not_of("0123456789") != port.npos || *number < 1 ||
        *number > 65535)
      return wrong;
    address.port = static_cast<int>(*number);
    machine.resize(colon);
  }
  if (machine.starts_with('[') && machine.ends_with(']'))
    machine = machine.substr(1, machine.size() - 2);
  const auto is_bad = [](char c) { return c <= ' ' || c == '@' || c == '?' || c == '#'; };
  if (machine.empty() || std::ranges::any_of(machine + address.path, is_bad)) return wrong;
  address.host = std::move(machine);
  return address;
}

std::string HttpAddress::machine() const {
  const bool is_ipv6 = host.find(':') != host.npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string HttpAddress::text() const { return "http://" + machine() + path; }

Result<HttpReply> http_post(const HttpAddress& to, const std::string& path, const std::string& json,
                            const HttpPatience& patience) {
  const auto connection = connect_to_host(to, patience);
  if (!connection) return connection.error();
  const std::string request =
      "POST " + to.path + path + " HTTP/1.1\r\nHost: " + to.machine() +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(json.size()) +
      "\r\nConnection: close\r\n\r\n" + json;
  if (auto sent = send_all(connection->number(), request, patience); !sent) return sent.error();
  return read_reply(connection->number(), patience);
}

}  // namespace troupe::apps
