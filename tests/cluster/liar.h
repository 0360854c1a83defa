#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "transport/control/conversation.h"
#include "transport/sockets.h"

namespace troupe::tests {

/// The keys of somebody who dials a head that has keys.
struct LiarKeys {
  transport::KeyPair own;
  std::string head_key;
};

/// Somebody who speaks to a head like a node, without faults of form, and says what it likes.
class Liar {
 public:
  explicit Liar(const std::string& head, std::optional<LiarKeys> keys = {});

  /// Asks to be taken in as a node. False if the head did not welcome it.
  bool join(const std::string& name, std::uint64_t term = 0);
  bool join(const actors::Join& join, std::uint64_t term = 0);
  /// Numbered, as what a node says.
  void say(transport::Message message);
  /// As it is.
  void say_unnumbered(transport::Message message);
  /// Whether the head ends the connection in time.
  bool is_thrown_out() { return line_.gone.wait(1); }
  /// What the head said last, of this type; nothing if it says nothing of the kind in time.
  std::optional<transport::Message> hear(const std::string& type);

  /// Which of its questions the head has answered so far, by their ids, in the order of the
  /// answers; waits for so many.
  std::vector<std::uint64_t> answered(std::size_t count);

  /// A report about attempt 1 of a run.
  static transport::Message about(const std::string& run, const std::string& type);
  /// How an honest node introduces itself.
  static actors::Join introduction(const std::string& name);

 private:
  std::uint64_t incarnation_ = transport::new_incarnation();
  transport::Conversation conversation_{incarnation_};
  Node line_;
};

}  // namespace troupe::tests
