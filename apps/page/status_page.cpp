#include "apps/page/status_page.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/client/head_tables.h"
#include "apps/client/which_head.h"
#include "apps/page/metrics.h"
#include "apps/page/page_files.h"
#include "core/json.h"
#include "core/text.h"
#include "core/threads/thread_name.h"
#include "transport/channels/socket.h"
#include "transport/control/endpoint.h"

namespace troupe::apps {
namespace {

using Clock = std::chrono::steady_clock;

// An answer is used for this long, whoever asks.
constexpr auto fresh = std::chrono::milliseconds(500);
// A long history is read by and by, so that other visitors wait less.
constexpr int pages_at_once = 32;
constexpr std::size_t most_histories = 32;
constexpr std::uint64_t most_config_bytes = std::uint64_t{1} << 20;

/// The limit for reading a request, and for writing an answer.
constexpr auto patience = std::chrono::milliseconds(500);
constexpr std::size_t most_request_bytes = 8192;
constexpr int pause_milliseconds = 100;

/// Returns whether the socket becomes ready before `end`.
bool wait_for(int socket, short what, Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  pollfd item{socket, what, 0};
  return left.count() > 0 && poll(&item, 1, static_cast<int>(left.count())) > 0;
}

/// Reads up to the empty line. Returns nothing if it is late or too long.
std::string read_request(int socket, Clock::time_point end) {
  std::string request;
  while (request.size() < most_request_bytes && wait_for(socket, POLLIN, end)) {
    std::array<char, 1024> bytes;
    const auto count = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) break;
    request.append(bytes.data(), static_cast<std::size_t>(count));
    if (request.find("\r\n\r\n") != std::string::npos) return request;
  }
  return {};
}

void write_all(int socket, std::string_view bytes, Clock::time_point end) {
  while (!bytes.empty() && wait_for(socket, POLLOUT, end)) {
    const auto sent = send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// The page runs its own script, uses its own styles, and asks its own head.
constexpr const char* policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

std::string response(const std::string& status, const std::string& type, std::string_view body) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: " + type +
         "; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
         "Referrer-Policy: no-referrer\r\nContent-Security-Policy: " +
         policy + "\r\nConnection: close\r\n\r\n" + std::string(body);
}

std::string ok(const std::string& type, std::string_view body) {
  return response("200 OK", type, body);
}

std::string not_found() {
  return response("404 Not Found", "text/plain",
                  "there are /, /metrics, /healthz, /api/status, /api/runs/NAME and "
                  "/api/runs/NAME/config\n");
}

std::string lowered(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

/// Returns the value of a request's `Host` header, if it has one.
std::optional<std::string> host_asked_for(const std::string& request) {
  const std::string all = lowered(request);
  const std::string_view name = "\r\nhost:";
  const auto found = all.find(name);
  if (found == all.npos) return {};
  const auto from = all.find_first_not_of(" \t", found + name.size());
  const auto end = all.find("\r\n", found + name.size());
  return all.substr(from, all.find_last_not_of(" \t", end - 1) + 1 - from);
}

/// Returns whether a browser that requests this host means this machine. A foreign page's host name
/// that its owner resolves to 127.0.0.1 (DNS rebinding) does not.
bool means_this_machine(const std::string& host) {
  const bool has_port =
      host.rfind(':') != host.npos && host.find(']', host.rfind(':')) == host.npos;
  const auto endpoint = transport::parse_endpoint("tcp://" + host + (has_port ? "" : ":80"));
  return endpoint && transport::is_local(*endpoint);
}

}  // namespace

std::string page_of(const Value& status) {
  constexpr std::string_view place = "@plain@";
  std::string page(page_html());
  const auto at = page.find(place);
  return page.replace(at, place.size(), escaped(nodes_table(status) + "\n" + runs_table(status)));
}

StatusPage::StatusPage(Descriptor listening, storage::Files& files, Status status, Numbers numbers)
    : listening_(std::move(listening)),
      files_(files),
      status_(std::move(status)),
      numbers_(std::move(numbers)),
      thread_([this] { run(); }) {}

StatusPage::~StatusPage() {
  ends_.ring();
  thread_.join();
}

Result<std::unique_ptr<StatusPage>> StatusPage::listen(const std::string& address,
                                                       storage::Files& files, Status status,
                                                       Numbers numbers) {
  const auto endpoint = transport::parse_endpoint("tcp://" + address);
  if (!endpoint) return endpoint.error();
  if (!transport::is_local(*endpoint))
    return Error{"--http " + address +
                 ": wanted an address of this machine alone, such as 127.0.0.1:4702: a page asks "
                 "for no keys; ssh -L brings it elsewhere"};
  const auto where = transport::tcp_address(address);
  if (!where) return where.error();
  auto listening = transport::listen_at(*where);
  if (!listening) return within("--http " + address, listening.error());
  return std::unique_ptr<StatusPage>(
      new StatusPage(std::move(*listening), files, std::move(status), std::move(numbers)));
}

std::string StatusPage::address() const {
  return "http://" + transport::to_text(transport::address_of(listening_)) + "/";
}

void StatusPage::run() {
  name_thread("status page");
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

void StatusPage::serve(const Descriptor& visitor) {
  const auto request = read_request(visitor.number(), Clock::now() + patience);
  const auto end = Clock::now() + patience;
  write_all(visitor.number(), answer_to(request), end);
  // Unread input would make close() reset the connection, which could discard the answer.
  shutdown(visitor.number(), SHUT_WR);
  std::array<char, 1024> rest;
  while (wait_for(visitor.number(), POLLIN, end) &&
         recv(visitor.number(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
  }
}

std::string StatusPage::answer_to(const std::string& request) {
  const std::string line = request.substr(0, request.find("\r\n"));
  if (line.empty()) return response("400 Bad Request", "text/plain", "no request came\n");
  const bool wants_head = line.starts_with("HEAD ");
  if (!line.starts_with("GET ") && !wants_head)
    return response("405 Method Not Allowed", "text/plain", "this page only tells\n");
  if (const auto host = host_asked_for(request); host && !means_this_machine(*host))
    return response("403 Forbidden", "text/plain",
                    "this page answers to localhost, 127.0.0.1 and [::1] alone: ask for it by one "
                    "of these; ssh -L brings it to another machine\n");
  const auto from = line.find(' ') + 1;
  const auto target = line.substr(from, line.find(' ', from) - from);
  auto answer = answer_about(target.substr(0, target.find('?')));
  if (wants_head) answer.resize(answer.find("\r\n\r\n") + 4);
  return answer;
}

std::string StatusPage::answer_about(const std::string& path) {
  constexpr std::string_view of_runs = "/api/runs/";
  if (path == "/") return ok("text/html", page_of(status_()));
  if (path == "/page.css") return ok("text/css", page_css());
  if (path == "/page.js") return ok("text/javascript", page_js());
  if (path == "/metrics") return ok("text/plain; version=0.0.4", metrics_of(status_(), numbers_()));
  if (path == "/healthz") return (void)status_(), ok("text/plain", "ok\n");
  if (path == "/api/status") return ok("application/json", status_text());
  return path.starts_with(of_runs) ? answer_about_run(path.substr(of_runs.size())) : not_found();
}

/// `asked` is "NAME" or "NAME/config".
std::string StatusPage::answer_about_run(const std::string& asked) {
  const auto end = asked.find('/');
  const auto name = asked.substr(0, end);
  const auto part = end == asked.npos ? std::string() : asked.substr(end + 1);
  (void)status_text();
  // The name becomes part of a path: only the names of runs do.
  const auto& runs = list_in(newest_, "runs");
  const bool is_known =
      std::ranges::any_of(runs, [&](const Value& run) { return text_of(run, "name") == name; });
  if (!is_known || name.empty()) return not_found();
  if (part.empty()) return ok("application/json", history_text(name));
  if (part != "config") return not_found();
  const auto file = files_.open("runs/" + name + "/config.toml");
  if (!file || (*file)->size() > most_config_bytes) return not_found();
  std::string text((*file)->size(), '\0');
  if (!(*file)->read(0, std::as_writable_bytes(std::span(text.data(), text.size()))))
    return not_found();
  return ok("text/plain", text);
}

const std::string& StatusPage::status_text() {
  const auto now = Clock::now();
  if (!newest_text_.made || now - *newest_text_.made >= fresh) {
    newest_ = status_();
    newest_text_ = {to_json(newest_), now};
  }
  return newest_text_.text;
}

const std::string& StatusPage::history_text(const std::string& run) {
  const auto now = Clock::now();
  auto known = runs_.find(run);
  if (known == runs_.end()) {
    if (runs_.size() >= most_histories)
      runs_.erase(std::ranges::min_element(runs_, {},
                                           [](const auto& entry) { return entry.second.asked; }));
    known =
        runs_.emplace(run, KeptRun{RunHistory(files_, "runs/" + run + "/events.jsonl"), {}, now})
            .first;
  }
  auto& [history, answer, asked] = known->second;
  asked = now;
  if (!answer.made || now - *answer.made >= fresh) {
    (void)history.read_on(pages_at_once);
    answer = {to_json(history.value()), now};
  }
  return answer.text;
}

}  // namespace troupe::apps
