#include "transport/control/zmq_parts.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace troupe::transport {
namespace {

int whole(std::chrono::milliseconds time) { return static_cast<int>(time.count()); }

}  // namespace

Monitor::Monitor(zmq::context_t& context, zmq::socket_t& socket) : watched_(socket) {
  // Each monitor of a context needs a unique address; the socket's address is unique.
  std::array<char, 64> address{};
  std::snprintf(address.data(), address.size(), "inproc://monitor-%p", socket.handle());
  if (zmq_socket_monitor(socket.handle(), address.data(), ZMQ_EVENT_ALL) != 0) throw zmq::error_t();
  events_ = zmq::socket_t(context, zmq::socket_type::pair);
  events_.set(zmq::sockopt::linger, 0);
  events_.set(zmq::sockopt::rcvhwm, 0);
  events_.connect(address.data());
}

Monitor::~Monitor() {
  // Otherwise ZeroMQ's thread would block forever, waiting for somebody to read the next event.
  zmq_socket_monitor(watched_.handle(), nullptr, 0);
}

std::optional<Monitor::Event> Monitor::next() {
  zmq::message_t head;
  if (!events_.recv(head, zmq::recv_flags::dontwait)) return std::nullopt;
  zmq::message_t address;
  if (head.more()) (void)events_.recv(address);
  std::uint16_t what = 0;
  std::int32_t value = 0;
  assert(head.size() == sizeof what + sizeof value);
  std::memcpy(&what, head.data(), sizeof what);
  std::memcpy(&value, head.data<char>() + sizeof what, sizeof value);
  return Event{what, value};
}

bool Parts::receive(zmq::socket_t& socket, std::size_t most) {
  messages_.clear();
  all_kept_ = true;
  for (bool more = true; more;) {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return false;
    more = part.more();
    if (messages_.size() < most)
      messages_.push_back(std::move(part));
    else
      all_kept_ = false;
  }
  return true;
}

std::vector<std::string_view> Parts::from(std::size_t first) const {
  std::vector<std::string_view> views;
  for (std::size_t i = first; i < messages_.size(); ++i)
    views.push_back(messages_[i].to_string_view());
  return views;
}

std::vector<std::string> Parts::copy() const {
  std::vector<std::string> copies;
  for (const auto& message : messages_) copies.push_back(message.to_string());
  return copies;
}

std::string Parts::property(const char* name) const {
  if (messages_.empty()) return {};
  // Ask the last part: a ROUTER makes the first one itself.
  const char* text = zmq_msg_gets(messages_.back().handle(), name);
  return text ? text : "";
}

int Parts::descriptor() const {
  const auto text = property("__fd");
  return text.empty() ? -1 : std::atoi(text.c_str());
}

int send_parts(zmq::socket_t& socket, std::optional<std::string_view> routing_id,
               const std::vector<std::string>& parts) {
  const auto send = [&](std::string_view part, bool more) {
    return zmq_send(socket.handle(), part.data(), part.size(),
                    ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0;
  };
  if (routing_id && !send(*routing_id, true)) return zmq_errno();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!send(parts[i], i + 1 < parts.size())) return zmq_errno();
  return 0;
}

void set_link_options(zmq::socket_t& socket, const LinkOptions& link, const Endpoint& endpoint) {
  namespace option = zmq::sockopt;
  socket.set(option::linger, 0);
  socket.set(option::sndhwm, link.high_water);
  socket.set(option::rcvhwm, link.high_water);
  socket.set(option::maxmsgsize, static_cast<std::int64_t>(largest_message()));
  socket.set(option::immediate, true);
  socket.set(option::handshake_ivl, whole(link.handshake));
  socket.set(option::connect_timeout, whole(link.handshake));
  socket.set(option::ipv6, endpoint.host.find(':') != std::string::npos);
  // The dialer reconnects, because ZeroMQ gives up for good when a handshake fails.
  socket.set(option::reconnect_ivl, -1);
}

void ask_far_end(zmq::socket_t& socket, const LinkOptions& link) {
  namespace option = zmq::sockopt;
  socket.set(option::heartbeat_ivl, whole(link.ask_every));
  socket.set(option::heartbeat_timeout, whole(link.silence));
  // Tells the peer about this end. ZeroMQ counts it in tenths of a second.
  socket.set(option::heartbeat_ttl, std::max(100, whole(link.silence)));
}

void let_system_ask(zmq::socket_t& socket) {
  namespace option = zmq::sockopt;
  socket.set(option::tcp_keepalive, 1);
  // In seconds.
  socket.set(option::tcp_keepalive_idle, 10);
  socket.set(option::tcp_keepalive_intvl, 5);
  socket.set(option::tcp_keepalive_cnt, 3);
}

void set_server_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys) {
  socket.set(zmq::sockopt::zap_domain, std::string(zap_domain));
  if (!keys) return;
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, keys->secret_key);
}

void set_client_keys(zmq::socket_t& socket, const std::optional<KeyPair>& keys,
                     const std::string& server_key) {
  if (!keys) return;
  socket.set(zmq::sockopt::curve_publickey, keys->public_key);
  socket.set(zmq::sockopt::curve_secretkey, keys->secret_key);
  socket.set(zmq::sockopt::curve_serverkey, server_key);
}

Result<std::string> bind_socket(zmq::socket_t& socket, const Endpoint& endpoint) {
  if (auto free = check_free(endpoint); !free) return free.error();
  if (zmq_bind(socket.handle(), to_string(endpoint).c_str()) != 0)
    return bind_error(endpoint, zmq_errno());
  return socket.get(zmq::sockopt::last_endpoint);
}

void remove_socket_file(const std::string& bound) {
  const auto endpoint = parse_endpoint(bound);
  if (endpoint && endpoint->kind == Endpoint::Kind::ipc) ::unlink(endpoint->path.c_str());
}

zmq::socket_t zap_socket(zmq::context_t& context) {
  // A ROUTER instead of a REP, because it need not answer an invalid question.
  zmq::socket_t socket(context, zmq::socket_type::router);
  socket.set(zmq::sockopt::linger, 0);
  socket.bind("inproc://zeromq.zap.01");
  return socket;
}

bool answer_next(zmq::socket_t& zap, const AllowList& allowed,
                 const std::function<void(const ZapAnswer&)>& refused) {
  constexpr std::size_t most_parts = 12;
  Parts parts;
  if (!parts.receive(zap, most_parts)) return false;
  // The asker's routing id and an empty part come first.
  auto question = parts.copy();
  if (question.size() < 2) return true;
  const std::string asker = question[0];
  question.erase(question.begin(), question.begin() + 2);
  auto answer = answer_zap(question, allowed);
  if (answer.parts.empty()) return true;
  if (!answer.refused.empty()) refused(answer);
  answer.parts.insert(answer.parts.begin(), "");
  send_parts(zap, asker, answer.parts);
  return true;
}

std::optional<std::string> far_end(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(descriptor, generic, &size) != 0) return std::nullopt;
  if (address.ss_family == AF_UNIX) {
    ucred owner{};
    socklen_t owner_size = sizeof owner;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &owner, &owner_size) != 0)
      return std::nullopt;
    return "process " + std::to_string(owner.pid);
  }
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(generic, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return std::nullopt;
  return std::string(host.data()) + ":" + port.data();
}

std::optional<std::uint64_t> bytes_received(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info.tcpi_bytes_received;
}

void shut(int descriptor, const std::string& expected) {
  // The descriptor may be closed and reused at any time; a duplicate of it cannot.
  const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return;
  if (far_end(copy) == expected) ::shutdown(copy, SHUT_RDWR);
  ::close(copy);
}

std::size_t bytes_of(const std::vector<std::string>& parts) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  return bytes;
}

void wait_for(std::vector<zmq_pollitem_t>& items, std::chrono::milliseconds time) {
  const int ready = zmq_poll(items.data(), static_cast<int>(items.size()), time.count());
  assert((ready >= 0 || zmq_errno() == EINTR) && "a socket was closed while it was in use");
  if (ready < 0)
    for (auto& item : items) item.revents = 0;
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

std::chrono::milliseconds until(std::optional<TimePoint> time, TimePoint now) {
  if (!time) return std::chrono::milliseconds(-1);
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::ceil<std::chrono::milliseconds>(*time - now));
}

}  // namespace troupe::transport
