#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/chaos.h"
#include "actors/executors.h"
#include "actors/nodes/node_attempt.h"
#include "actors/nodes/node_messages.h"
#include "core/env.h"
#include "core/threads/thread_stacks.h"
#include "transport/control/control_socket.h"
#include "transport/network.h"

namespace troupe::actors {

/// Nodes dial again often, since runs wait for them after a restart of the head.
inline constexpr transport::BackoffRules node_backoff{.longest = std::chrono::milliseconds(250)};

struct NodeOptions {
  std::string name;
  Inventory inventory;
  std::uint64_t term = 0;  // The term of the latest head that this host knows,
  std::string term_proof;  // and its proof.
  std::int64_t life = 0;   // See Join.
  transport::DialOptions dial;
  std::string interface = "127.0.0.1";  // The interface for other nodes.
  Carriers carriers = Carriers::shm_and_tcp;
  /// Opens what a configuration names, with executors for the devices placed here. Runs aside.
  std::function<Result<std::shared_ptr<RunHome>>(const Value& config, const Placement& placement,
                                                 int here)>
      open_run;
  std::function<void(const Chaos&)> apply_fault;  // Applies an injected fault.
  /// Returns where the threads of this process are. Runs aside. May be empty.
  std::function<std::vector<ThreadStack>()> thread_stacks;
  std::function<void(const std::string&)> say;       // Prints a line for the user.
  std::function<void(const std::string&)> rejected;  // The head has rejected the node for good.
  /// Called when a device has failed or does not let go of a run's memory. It must end the process
  /// at once and not return.
  std::function<void(const std::string& why)> stuck;
  /// Called when this process is done: it has left, or its head was gone too long. Another process
  /// may take its place.
  std::function<void(const std::string& why)> retired;
  /// Called when the head has ended this node for good; no process may take its place.
  std::function<void(const std::string& why)> dismissed;
};

/// A process with devices. It connects to the head and has a node attempt for each run in which it
/// takes part. A reconnect changes nothing. If its head has given it up or has started again, it
/// ends its attempts and joins as a new node, with the states that it keeps.
class Node {
 public:
  /// All that a node takes from outside. It outlives the node.
  struct Context {
    Env& env;
    transport::Network& network;
    caf_shim::System& system;
    Executors& executors;  // Opens what copies states; RunHome has the devices.
  };

  static Result<std::unique_ptr<Node>> start(const Context& context, NodeOptions options);
  /// Drops its attempts. A node that has retired has none.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Retires when no run uses this node any more. Any thread may call it.
  void leave(const std::string& reason);
  /// Sends the state of this machine's GPUs to the head, if connected. Any thread may call it.
  void tell(const GpuReadings& readings);
  /// Sends what is in use of its machine to the head, if connected. Any thread may call it.
  void tell(const MachineLoad& load);

 private:
  class Work;
  Node(const Context& context, NodeOptions options);

  std::unique_ptr<Work> work_;
};

}  // namespace troupe::actors
