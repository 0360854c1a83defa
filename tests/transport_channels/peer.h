#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace troupe::transport {

/// A running process of the program CHANNEL_PEER, which lies beside this one. The destructor kills
/// it and waits for it.
class Peer {
 public:
  explicit Peer(const std::vector<std::string>& words);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// Writes a line to its input.
  void say(const std::string& line);
  /// Returns the next line of its output; empty at its end, or if it takes longer than the limit.
  std::string line();
  /// Kills it with SIGKILL and waits until it is gone.
  void kill();
  /// Waits until it has ended.
  int exit_status();
  pid_t id() const { return id_; }

 private:
  pid_t id_ = -1;
  int input_ = -1;  // Closing this ends the process.
  int output_ = -1;
  std::string read_;
};

}  // namespace troupe::transport
