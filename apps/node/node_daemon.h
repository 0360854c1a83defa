#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apps/machine/kept_process.h"
#include "apps/node/node_arguments.h"
#include "apps/processes.h"
#include "core/env.h"
#include "core/result.h"
#include "transport/control/control_socket.h"
#include "transport/network.h"

namespace troupe::apps {

struct NodeDaemonOptions {
  NodeArguments arguments;      // The node process gets them.
  transport::DialOptions dial;  // Dials the head, with the keys of the arguments.
  /// How long the node process may take to end after end(). Then it is killed.
  std::chrono::milliseconds leave_patience = std::chrono::seconds(30);
  bool quiet = false;                              // The node process says nothing.
  std::function<void(const std::string&)> say;     // Prints a line for the user; any thread.
  std::function<void(const std::string&)> status;  // Tells how the connection is; any thread.
  /// Called on any thread when the node process has ended with this code and no other may take its
  /// place.
  std::function<void(int code)> ended;
};

/// The daemon of a host. It starts the node process, restarts it when it ends, and reports each end
/// to the head. It waits for nothing, and its caller may destroy it at any moment.
class NodeDaemon {
 public:
  /// The surroundings of a daemon, which outlive it.
  struct Context {
    Env& env;
    transport::Network& network;
    Processes& processes;
  };

  static Result<std::unique_ptr<NodeDaemon>> start(const Context& context,
                                                   NodeDaemonOptions options);
  /// Kills the node process if it has not ended.
  ~NodeDaemon();
  NodeDaemon(const NodeDaemon&) = delete;
  NodeDaemon& operator=(const NodeDaemon&) = delete;

  /// Asks the node process to end. Calls `then`, on any thread, once it has and no other will
  /// start.
  void end(std::function<void()> then);

 private:
  class Line;
  NodeDaemon(const Context& context, NodeDaemonOptions options);
  KeepOptions keep_options();
  bool process_ended(const ProcessEnd& end);

  const Context context_;
  const NodeDaemonOptions options_;
  const std::unique_ptr<Line> line_;
  std::atomic<bool> leaves_ = false;
  std::int64_t life_ = 0;  // The secret of the present process; used by the keeper's loop.
  std::unique_ptr<KeptProcess> process_;  // Last: its loop uses the other members.
};

}  // namespace troupe::apps
