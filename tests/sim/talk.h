#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "tests/sim/wired_process.h"
#include "transport/control/conversation.h"

namespace troupe::simulation {

/// Limits with which a silence is noticed soon.
inline transport::LinkOptions short_patience() {
  transport::LinkOptions link;
  link.ask_every = std::chrono::milliseconds(100);
  link.silence = std::chrono::milliseconds(500);
  link.plain = transport::LinkOptions::Plain::anywhere;
  return link;
}

/// The findings of one end of a conversation, which outlive its process.
struct Heard {
  std::vector<std::uint64_t> numbers;
  int lives = 0;  // Connections that were reported.
  int gone = 0;
  std::optional<std::string> flaw;
};

inline transport::Message numbered(const char* type, std::uint64_t number) {
  transport::Message message;
  message.type = type;
  message.body.set("number", static_cast<std::int64_t>(number));
  return message;
}

inline std::vector<std::uint64_t> numbers_up_to(std::uint64_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 1; i <= count; ++i) numbers.push_back(i);
  return numbers;
}

inline void hear(transport::Conversation& conversation, transport::Message message, Heard& heard) {
  auto now = conversation.hear(std::move(message));
  if (!now) {
    heard.flaw = now.error().text;
    return;
  }
  if (*now && (*now)->type != "node.heartbeat")
    heard.numbers.push_back(static_cast<std::uint64_t>(*(*now)->body.find("number")->integer()));
}

/// The listening end: a conversation with each life that says hello.
class TalkingServer {
 public:
  TalkingServer(WiredProcess& process, std::map<std::uint64_t, Heard>& heard,
                const std::string& endpoint)
      : incarnation_(transport::new_incarnation(*process.env)),
        heard_(heard),
        loop_(process.env->make_loop({"server"})) {
    transport::ServerOptions options;
    options.endpoint = endpoint;
    options.link = short_patience();
    transport::ServerEvents events;
    events.message = [this](const transport::Peer& peer, transport::Message message) {
      take(peer, std::move(message));
    };
    events.gone = [this](const transport::Peer& peer, transport::Gone, const std::string&) {
      auto& one = talks_.at(peer.incarnation);
      ++heard_[peer.incarnation].gone;
      if (one.peer == peer.id) one.conversation.pause();
    };
    auto made = process.network->listen(std::move(options), std::move(events), *loop_);
    REQUIRE(made);
    socket_ = std::move(*made);
    socket_->start();
  }

  const std::string& endpoint() const { return socket_->endpoint(); }
  transport::ControlServer& socket() { return *socket_; }
  Loop& loop() { return *loop_; }
  /// Says the next number to each life.
  void say() {
    for (auto& [life, one] : talks_) (void)one.conversation.say(numbered("prepare", ++one.said));
  }
  std::uint64_t said(std::uint64_t life) const {
    const auto found = talks_.find(life);
    return found == talks_.end() ? 0 : found->second.said;
  }

 private:
  struct Talk {
    explicit Talk(std::uint64_t incarnation) : conversation(incarnation) {}
    transport::Conversation conversation;
    transport::PeerId peer = 0;
    std::uint64_t said = 0;
  };

  void take(const transport::Peer& peer, transport::Message message) {
    auto& one = talks_.try_emplace(peer.incarnation, incarnation_).first->second;
    if (message.type != "hello") {
      // A late message of a connection before changes nothing that a repeated one would not.
      hear(one.conversation, std::move(message), heard_[peer.incarnation]);
      return;
    }
    ++heard_[peer.incarnation].lives;
    one.peer = peer.id;
    transport::Message welcome;
    welcome.type = "node.welcome";
    welcome.incarnation = incarnation_;
    welcome.ack = one.conversation.ack();
    if (!socket_->send(peer.id, welcome)) return (void)socket_->cut(peer.id, "no room");
    const auto resumed = one.conversation.resume(
        message.incarnation, message.ack,
        [this, id = peer.id](const transport::Message& said) { return socket_->send(id, said); });
    if (!resumed) heard_[peer.incarnation].flaw = resumed.error().text;
  }

  const std::uint64_t incarnation_;
  std::map<std::uint64_t, Heard>& heard_;
  std::map<std::uint64_t, Talk> talks_;  // Keyed by life.
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<transport::ControlServer> socket_;
};

/// The dialing end.
class TalkingClient {
 public:
  TalkingClient(WiredProcess& process, Heard& heard, const std::string& endpoint)
      : incarnation(transport::new_incarnation(*process.env)),
        heard_(heard),
        conversation_(incarnation),
        loop_(process.env->make_loop({"client"})) {
    transport::DialOptions options;
    options.endpoint = endpoint;
    options.link = short_patience();
    options.seed = incarnation;
    transport::ClientEvents events;
    events.connected = [this] {
      ++heard_.lives;
      transport::Message hello;
      hello.type = "hello";
      hello.incarnation = incarnation;
      hello.ack = conversation_.ack();
      (void)socket_->send(hello);
    };
    events.message = [this](transport::Message message) { take(std::move(message)); };
    events.gone = [this](transport::Gone, const std::string&) {
      ++heard_.gone;
      conversation_.pause();
    };
    auto made = process.network->dial(std::move(options), std::move(events), *loop_);
    REQUIRE(made);
    socket_ = std::move(*made);
    socket_->start();
  }

  Loop& loop() { return *loop_; }
  void say() { (void)conversation_.say(numbered("prepared", ++said_)); }
  /// Says something that need not arrive.
  void pulse() { (void)conversation_.say(numbered("node.heartbeat", 0)); }
  /// Called if another process has taken the place of the server.
  std::function<void()> on_stranger;
  std::uint64_t said() const { return said_; }

  const std::uint64_t incarnation;

 private:
  void take(transport::Message message) {
    if (message.type != "node.welcome") return hear(conversation_, std::move(message), heard_);
    const auto resumed = conversation_.resume(
        message.incarnation, message.ack,
        [this](const transport::Message& said) { return socket_->send(said); });
    if (resumed) return;
    heard_.flaw = resumed.error().text;
    if (on_stranger) on_stranger();
  }

  Heard& heard_;
  transport::Conversation conversation_;
  std::uint64_t said_ = 0;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<transport::ControlClient> socket_;
};

}  // namespace troupe::simulation
