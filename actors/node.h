#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "actors/chaos.h"
#include "actors/site.h"
#include "transport/control_socket.h"
#include "transport/fields.h"

namespace troupe::actors {

/// What a process with devices can do.
struct Inventory {
  std::string host;
  std::int64_t pid = 0;
  std::string version;  // Of this program: all processes of a run are of one.
  int cores = 1;
  std::int64_t memory = 0;  // Bytes.
  bool bf16 = false;        // Whether it has products in bf16.

  static constexpr auto fields() {
    return std::tuple(transport::required("host", &Inventory::host),
                      transport::required("pid", &Inventory::pid),
                      transport::required("version", &Inventory::version),
                      transport::required("cores", &Inventory::cores).at_least(1),
                      transport::required("memory", &Inventory::memory).at_least(0),
                      transport::required("bf16", &Inventory::bf16));
  }
};

/// Node to head: here I am.
struct Join {
  static constexpr std::string_view type = "node.join";

  std::string name;  // Wanted; the head may choose another one.
  Inventory inventory;

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Join::name),
                      transport::required("inventory", &Join::inventory));
  }
};

/// Head to node: be welcome.
struct Welcome {
  static constexpr std::string_view type = "node.welcome";

  std::string name;

  static constexpr auto fields() { return std::tuple(transport::required("name", &Welcome::name)); }
};

/// Head to node: not here.
struct Rejected {
  static constexpr std::string_view type = "node.reject";

  std::string reason;
  std::string found;
  std::string wanted;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Rejected::reason),
                      transport::required("found", &Rejected::found),
                      transport::required("wanted", &Rejected::wanted));
  }
};

struct NodeOptions {
  std::string name;
  Inventory inventory;
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
};

/// A process with devices: dials the head, and has a site of every run that it is given.
class Node {
 public:
  static Result<std::unique_ptr<Node>> start(NodeOptions options);
  /// Ends its sites.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

 private:
  class Work;
  explicit Node(NodeOptions options);

  std::unique_ptr<Work> work_;
};

}  // namespace troupe::actors
