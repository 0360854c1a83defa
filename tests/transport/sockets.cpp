#include "transport/sockets.h"

#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cassert>

#include "transport/control/endpoint.h"

using namespace troupe;
using namespace troupe::transport;

LinkOptions patient_link() {
  LinkOptions link;
  link.ask_every = std::chrono::seconds(5);
  link.silence = patience;
  link.handshake = patience;
  return link;
}

ServerOptions server_options(std::string endpoint) {
  ServerOptions options;
  options.endpoint = std::move(endpoint);
  options.link = patient_link();
  return options;
}

DialOptions dial_options(const std::string& endpoint) {
  DialOptions options;
  options.endpoint = endpoint;
  options.link = patient_link();
  options.backoff = {std::chrono::milliseconds(1), std::chrono::milliseconds(20)};
  return options;
}

Message message_of(std::string type, std::uint64_t id) {
  Message message;
  message.type = std::move(type);
  message.id = id;
  return message;
}

Head::Head(ServerOptions options) {
  ServerEvents events;
  events.connected = [this](const Peer& peer) { connected.add(peer); };
  events.message = [this](const Peer& peer, Message message) {
    {
      const std::lock_guard lock(answering_);
      if (answer_) answer_(peer, message);
    }
    messages.add({peer, std::move(message)});
  };
  events.gone = [this](const Peer& peer, Gone why, const std::string& text) {
    gone.add({peer, why, text});
  };
  events.refused = [this](const std::string&, const std::string& why) { refused.add(why); };
  auto bound = own.network.listen(std::move(options), std::move(events), *own.loop);
  assert(bound.ok());
  socket = std::move(*bound);
  socket->start();
}

void Head::answer_with(Answer answer) {
  const std::lock_guard lock(answering_);
  answer_ = std::move(answer);
}

Node::Node(DialOptions options, std::uint64_t incarnation) {
  ClientEvents events;
  events.connected = [this, incarnation] {
    auto hello = message_of("hello");
    hello.incarnation = incarnation;
    (void)socket->send(hello);
    connected.add(1);
  };
  events.message = [this](Message message) { messages.add(std::move(message)); };
  events.gone = [this](Gone why, const std::string& text) { gone.add({why, text}); };
  events.refused = [this](const std::string& why) { refused.add(why); };
  auto dialled = own.network.dial(std::move(options), std::move(events), *own.loop);
  assert(dialled.ok());
  socket = std::move(*dialled);
  socket->start();
}

RawListener::RawListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  [[maybe_unused]] const bool listens = ::bind(socket_, any, size) == 0 &&
                                        ::listen(socket_, 8) == 0 &&
                                        ::getsockname(socket_, any, &size) == 0;
  assert(listens);
  endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

RawListener::~RawListener() { ::close(socket_); }

RawConnection RawListener::accept() const {
  pollfd item{socket_, POLLIN, 0};
  [[maybe_unused]] const auto time =
      std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  [[maybe_unused]] const int came = ::poll(&item, 1, static_cast<int>(time.count()));
  assert(came == 1);
  return RawConnection(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
}

RawConnection::RawConnection(const std::string& endpoint) {
  const auto parsed = parse_endpoint(endpoint);
  assert(parsed.ok() && parsed->kind == Endpoint::Kind::tcp);
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(parsed->port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  [[maybe_unused]] const int rc =
      ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  assert(rc == 0);
}

RawConnection::~RawConnection() { ::close(socket_); }

void RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd item{socket_, POLLOUT, 0};
    if (::poll(&item, 1, 1000) <= 0) return;
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool RawConnection::read_more() {
  pollfd item{socket_, POLLIN, 0};
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  if (::poll(&item, 1, static_cast<int>(time.count())) <= 0) return false;
  std::array<char, 4096> buffer{};
  const auto got = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    ended_ = true;
    return false;
  }
  read_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

void RawConnection::finish() { ::shutdown(socket_, SHUT_WR); }

std::size_t RawConnection::times(std::string_view bytes) const {
  std::size_t count = 0;
  for (auto at = read_.find(bytes); at != std::string::npos; at = read_.find(bytes, at + 1))
    ++count;
  return count;
}

bool RawConnection::closed() {
  while (read_more()) {
  }
  return ended_;
}

bool RawConnection::wait_for(std::string_view bytes) {
  while (read_.find(bytes) == std::string::npos)
    if (!read_more()) return false;
  return true;
}

bool RawConnection::shake_hands(const std::string& type) {
  greet(type);
  return wait_for("READY");
}

void RawConnection::greet(const std::string& type) {
  std::string greeting = "\xff" + std::string(8, '\0') + "\x7f" + std::string("\3\0", 2) + "NULL";
  greeting.resize(64, '\0');
  send(greeting);
  const std::string ready = std::string("\x05") + "READY" + "\x0b" + "Socket-Type" +
                            std::string(3, '\0') + static_cast<char>(type.size()) + type;
  send("\x04" + std::string(1, static_cast<char>(ready.size())) + ready);
}

AnotherUser::AnotherUser() {
  // The system call affects only this thread; the library function would change all threads.
  const auto changed = syscall(SYS_setresuid, -1, user, -1);
  assert(changed == 0);
  (void)changed;
}
AnotherUser::~AnotherUser() { syscall(SYS_setresuid, -1, getuid(), -1); }

void RawConnection::send_message(const std::vector<std::string>& parts) {
  std::string bytes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bytes += static_cast<char>(2 | (i + 1 < parts.size() ? 1 : 0));
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes += static_cast<char>(parts[i].size() >> shift & 0xff);
    bytes += parts[i];
  }
  send(bytes);
}

std::vector<std::string> parts_of(const Message& message) {
  auto parts = encode(message);
  assert(parts.ok());
  return std::move(*parts);
}

std::size_t heap_bytes() { return mallinfo2().uordblks; }
