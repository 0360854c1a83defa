#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/result.h"
#include "transport/keys/keys.h"

namespace troupe::bench {

struct CrowdOptions {
  std::string endpoint;  // The head's, of the form tcp://127.0.0.1:PORT.
  int nodes = 0;
  std::string name = "crowd";  // Node names are this and a number.
  std::optional<transport::KeyPair> keys = {};
  std::string head_key = {};  // The head's public key, if there are keys.
};

/// Many nodes in this process, on one thread. Each has a socket and a loopback address of its own,
/// as if it were a machine, and speaks the whole protocol between a node and a head: it dials,
/// joins, sends heartbeats, acknowledges, and joins again after a break or when the head has
/// forgotten it. It has no devices, so it refuses every part in a run.
class Crowd {
 public:
  struct Counts {
    std::size_t welcome = 0;     // Nodes with a connection on which the head has welcomed them.
    std::size_t connected = 0;   // Connections that were made, since the start.
    std::size_t joins = 0;       // Join messages that were sent.
    std::size_t heartbeats = 0;  // Heartbeats that were sent.
    std::string refusal;         // The reason of the last rejection, if any.
    /// The longest delay of a heartbeat. A crowd that gets too little processor time looks silent.
    std::chrono::nanoseconds most_late{};
  };

  /// Starts to dial. Fails if the process may not open enough descriptors.
  static Result<std::unique_ptr<Crowd>> start(CrowdOptions options);
  /// Ends all connections without notice.
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  /// Waits until all nodes that were not taken away are welcome. Fails after the patience.
  Status wait_until_welcome(std::chrono::seconds patience);
  Counts counts() const;

  /// Ends the connections of this many nodes, as if their processes had died.
  void kill(int nodes);
  /// Makes this many nodes silent although their connections stay, as if their machines had frozen.
  void freeze(int nodes);

 private:
  class Work;
  explicit Crowd(std::unique_ptr<Work> work);

  std::unique_ptr<Work> work_;
};

}  // namespace troupe::bench
