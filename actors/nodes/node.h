#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/chaos.h"
#include "actors/nodes/node_messages.h"
#include "actors/nodes/site.h"
#include "transport/control/control_socket.h"

namespace troupe::actors {

struct NodeOptions {
  std::string name;
  Inventory inventory;
  std::uint64_t term = 0;  // Of the newest head that this host knows,
  std::string term_proof;  // and its proof.
  std::int64_t life = 0;   // As Join has it.
  transport::DialOptions dial;
  std::string interface = "127.0.0.1";  // Where other nodes reach this one.
  Carriers carriers = Carriers::shm_and_tcp;
  /// What a configuration names, opened, with executors for the devices that a placement puts here.
  std::function<Result<std::shared_ptr<RunHome>>(const Value& config, const Placement& placement,
                                                 int here)>
      open_run;
  std::function<void(const Chaos&)> suffer;          // A drill, whatever is done to all of it.
  std::function<void(const std::string&)> say;       // For the person who started it.
  std::function<void(const std::string&)> rejected;  // By the head: there is no use in going on.
  /// A device has failed, or does not let go of memory of a run: this process can only end, at
  /// once. Does not return.
  std::function<void(const std::string& why)> stuck;
  /// There is nothing more to do for this process: it has left, or its head was gone for too long.
  /// Another one in its place may be welcome.
  std::function<void(const std::string& why)> retired;
  /// The head has ended this node for good: no other process shall take its place.
  std::function<void(const std::string& why)> dismissed;
};

/// A process with devices: dials the head, and has a site of every run that it is given. A
/// connection that ends and comes back changes nothing. Where its head has given it up meanwhile,
/// or is in another life, it ends its sites and comes as a new one, with the states that it keeps.
class Node {
 public:
  static Result<std::unique_ptr<Node>> start(NodeOptions options);
  /// Ends its sites.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Retires as soon as no run has a part here any more. Any thread.
  void leave(const std::string& reason);
  /// Tells the head how this machine's GPUs are; nobody where there is no connection. Any thread.
  void tell(const GpuReadings& readings);

 private:
  class Work;
  explicit Node(NodeOptions options);

  std::unique_ptr<Work> work_;
};

}  // namespace troupe::actors
