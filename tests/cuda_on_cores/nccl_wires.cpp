#include "tests/cuda_on_cores/nccl_wires.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_on_cores {
namespace {

/// An abstract socket address, which disappears with its owner.
struct Address {
  explicit Address(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address = {};
  socklen_t bytes = 0;
};

int new_socket() {
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) end_by_misuse("there is no socket left for a communicator");
  return made;
}

std::string name_of(const std::string& name, int member) {
  return name + "/" + std::to_string(member);
}

template <class Word>
bool say(int socket, const Word& word) {
  return send(socket, &word, sizeof word, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof word);
}

template <class Word>
bool hear(int socket, Word& word) {
  return recv(socket, &word, sizeof word, 0) == static_cast<ssize_t>(sizeof word);
}

}  // namespace

void end_by_misuse(const std::string& what) {
  std::fprintf(stderr, "NCCL, played: %s\n", what.c_str());
  std::abort();
}

Wires::Wires(const std::string& name, const Introduction& own)
    : name_(name), own_(own), peers_(static_cast<std::size_t>(own.of)) {
  const Address here(name_of(name, own.member));
  listening_ = new_socket();
  if (bind(listening_, here.get(), here.bytes) != 0 || listen(listening_, own.of) != 0)
    end_by_misuse("member " + std::to_string(own.member) + " of a communicator is begun twice");
}

Wires::~Wires() {
  close(listening_);
  for (const int socket : strangers_) close(socket);
  for (const auto& peer : peers_)
    if (peer.socket >= 0) close(peer.socket);
}

bool Wires::meet() {
  accept_one();
  bool all = true;
  for (std::size_t member = 0; member < peers_.size(); ++member) {
    if (static_cast<int>(member) == own_.member) continue;
    auto& peer = peers_[member];
    if (static_cast<int>(member) < own_.member && peer.socket < 0) reach(member);
    if (peer.socket >= 0 && !peer.has_met) peer.has_met = hear(peer.socket, peer.said);
    if (peer.has_met && peer.said.of != own_.of)
      end_by_misuse("members of one communicator want others to be of it");
    all &= peer.has_met;
  }
  return all;
}

/// Connects to a member with a lower number by its name, once it listens.
void Wires::reach(std::size_t member) {
  const Address there(name_of(name_, static_cast<int>(member)));
  const int socket = new_socket();
  if (::connect(socket, there.get(), there.bytes) == 0 && say(socket, own_))
    peers_[member].socket = socket;
  else
    close(socket);
}

/// Accepts a member with a higher number, which introduces itself.
void Wires::accept_one() {
  const int stranger = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (stranger >= 0) strangers_.push_back(stranger);
  std::erase_if(strangers_, [&](int socket) {
    Introduction said;
    if (!hear(socket, said)) return false;
    if (said.member <= own_.member || said.member >= own_.of)
      end_by_misuse("a communicator has no member " + std::to_string(said.member));
    auto& peer = peers_[static_cast<std::size_t>(said.member)];
    peer.socket = socket;
    peer.said = said;
    peer.has_met = say(socket, own_);
    return true;
  });
}

int Wires::twin() const {
  for (const auto& peer : peers_)
    if (peer.has_met && peer.said.host == own_.host && peer.said.bus == own_.bus)
      return peer.said.member;
  return -1;
}

bool Wires::connect() {
  constexpr char word = 'c';
  bool all = true;
  for (auto& peer : peers_) {
    if (peer.socket < 0) continue;
    if (!has_said_connect_) (void)say(peer.socket, word);
    char heard = 0;
    peer.connects = peer.connects || hear(peer.socket, heard);
    all &= peer.connects;
  }
  has_said_connect_ = true;
  return all;
}

bool Wires::has_lost_one() const {
  for (const auto& peer : peers_) {
    pollfd what{peer.socket, POLLRDHUP, 0};
    if (peer.socket >= 0 && poll(&what, 1, 0) > 0) return true;
  }
  return false;
}

void Wires::hang_up() {
  for (const auto& peer : peers_)
    if (peer.socket >= 0) (void)shutdown(peer.socket, SHUT_RDWR);
}

bool Wires::send(int to, const Packet& packet, const std::byte* memory) {
  Packet head = packet;
  iovec parts[] = {{&head, sizeof head},
                   {const_cast<std::byte*>(memory) + packet.offset, packet.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return sendmsg(peers_[static_cast<std::size_t>(to)].socket, &message, MSG_NOSIGNAL) > 0;
}

bool Wires::look(int from, Packet& packet) {
  const int socket = peers_[static_cast<std::size_t>(from)].socket;
  return recv(socket, &packet, sizeof packet, MSG_PEEK) == static_cast<ssize_t>(sizeof packet);
}

void Wires::take(int from, std::byte* memory) {
  Packet head;
  (void)look(from, head);
  iovec parts[] = {{&head, sizeof head}, {memory + head.offset, head.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (recvmsg(peers_[static_cast<std::size_t>(from)].socket, &message, 0) !=
      static_cast<ssize_t>(sizeof head + head.size()))
    end_by_misuse("a part of an operation was cut off");
}

}  // namespace cuda_on_cores
