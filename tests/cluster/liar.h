#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "core/threads/real_env.h"
#include "transport/control/conversation.h"
#include "transport/sockets.h"

namespace troupe::tests {

/// The keys of a client that dials a head with keys.
struct LiarKeys {
  transport::KeyPair own;
  std::string head_key;
};

/// A client that speaks to a head like a node, in valid messages with arbitrary content.
class Liar {
 public:
  explicit Liar(const std::string& head, std::optional<LiarKeys> keys = {});

  /// Asks to join as a node. Returns false if the head does not welcome it.
  bool join(const std::string& name, std::uint64_t term = 0);
  bool join(const actors::Join& join, std::uint64_t term = 0);
  /// Sends a message with a sequence number, as a node does.
  void say(transport::Message message);
  /// Sends a message unchanged.
  void say_unnumbered(transport::Message message);
  /// Returns whether the head ends the connection in time.
  bool is_thrown_out() { return line_.gone.wait(1); }
  /// Returns the head's last message of this type; nothing if none comes in time.
  std::optional<transport::Message> hear(const std::string& type);

  /// Waits for `count` answers. Returns the ids of the answered questions in the order of the
  /// answers.
  std::vector<std::uint64_t> answered(std::size_t count);

  /// Returns a report about attempt 1 of a run.
  static transport::Message about(const std::string& run, const std::string& type);
  /// Returns the introduction of an honest node.
  static actors::Join introduction(const std::string& name);

 private:
  RealEnv env_;
  std::uint64_t incarnation_ = transport::new_incarnation(env_);
  transport::Conversation conversation_{incarnation_};
  Node line_;
};

}  // namespace troupe::tests
