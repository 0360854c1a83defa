#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::transport {

/// The program CHANNEL_PEER, which lies beside this one, running. Killed and waited for with its
/// owner.
class Peer {
 public:
  explicit Peer(const std::vector<std::string>& words);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// To its input.
  void say(const std::string& line);
  /// The next line that it prints; empty once it is over, or takes longer than a test waits.
  std::string line();
  /// Kills it without a word, and waits until it is gone.
  void kill();
  /// Waits until it has ended.
  int exit_status();
  pid_t id() const { return id_; }

 private:
  pid_t id_ = -1;
  int input_ = -1;  // It ends when this is closed.
  int output_ = -1;
  std::string read_;
};

}  // namespace troupe::transport
