#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/env.h"
#include "core/memory/memory_pool.h"
#include "transport/channels/door.h"
#include "transport/network.h"
#include "transport/wire/fields.h"

/// Nodes measure the ways between them when a person asks. The runs' own channels are not used.
namespace troupe::actors {

/// Head to node: let other nodes measure their ways to you.
struct OpenDoors {
  static constexpr std::string_view type = "open_doors";

  std::int64_t question = 0;  // The answers repeat it.
  std::int64_t secret = 0;    // Only nodes of this question know it.
  int nodes = 1;              // The nodes of the question, which are numbered from 0 on.

  static constexpr int most_nodes = 16;

  static constexpr auto fields() {
    return std::tuple(
        transport::required("question", &OpenDoors::question),
        transport::required("secret", &OpenDoors::secret),
        transport::required("nodes", &OpenDoors::nodes).at_least(1).at_most(most_nodes));
  }
};

/// Node to head: its doors are open, for some seconds.
struct NodeDoors {
  static constexpr std::string_view type = "node.doors";

  std::int64_t question = 0;
  std::string machine;   // Processes of one machine can share memory.
  std::string shm = {};  // Empty if the node has no such door,
  std::string tcp = {};
  std::string why = {};  // and why it lacks one.

  static constexpr auto fields() {
    return std::tuple(transport::required("question", &NodeDoors::question),
                      transport::required("machine", &NodeDoors::machine),
                      transport::required("shm", &NodeDoors::shm),
                      transport::required("tcp", &NodeDoors::tcp),
                      transport::optional("why", &NodeDoors::why));
  }
};

/// A node with open doors.
struct ProbeTarget {
  std::string name;
  std::string machine;
  std::string shm;
  std::string tcp;

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &ProbeTarget::name),
                      transport::required("machine", &ProbeTarget::machine),
                      transport::required("shm", &ProbeTarget::shm),
                      transport::required("tcp", &ProbeTarget::tcp));
  }
};

/// Head to node: measure your ways to these nodes, one after another.
struct ProbeLinks {
  static constexpr std::string_view type = "probe_links";

  std::int64_t question = 0;
  std::int64_t secret = 0;
  int here = 0;  // The node's number in the question.
  std::vector<ProbeTarget> targets;

  static constexpr auto fields() {
    return std::tuple(transport::required("question", &ProbeLinks::question),
                      transport::required("secret", &ProbeLinks::secret),
                      transport::required("here", &ProbeLinks::here).at_least(0),
                      transport::required("targets", &ProbeLinks::targets));
  }
};

/// A measured way.
struct ProbedLink {
  std::string to;
  std::string carrier;                    // "shm" or "tcp".
  std::optional<double> round_trip = {};  // Seconds.
  /// The rate of one parcel until it has arrived, which includes a round trip.
  std::optional<double> bytes_per_second = {};
  std::int64_t bytes = 0;  // The number of bytes that were sent.
  std::string why = {};    // Why nothing was measured.

  static constexpr auto fields() {
    return std::tuple(
        transport::required("to", &ProbedLink::to),
        transport::required("carrier", &ProbedLink::carrier),
        transport::optional("round_trip", &ProbedLink::round_trip).at_least(0),
        transport::optional("bytes_per_second", &ProbedLink::bytes_per_second).at_least(0),
        transport::optional("bytes", &ProbedLink::bytes).at_least(0),
        transport::optional("why", &ProbedLink::why));
  }
};

/// Node to head: its ways to other nodes.
struct NodeLinks {
  static constexpr std::string_view type = "node.links";

  std::int64_t question = 0;
  std::vector<ProbedLink> links;

  static constexpr auto fields() {
    return std::tuple(transport::required("question", &NodeLinks::question),
                      transport::required("links", &NodeLinks::links));
  }
};

/// The bytes that a probe of one way by one carrier sends to measure its rate, and how often.
inline constexpr std::int64_t probe_bytes = std::int64_t{128} << 10;
inline constexpr int probes_of_rate = 2;

/// A node's part in probes. All functions are called by tasks of one loop, which ends before this
/// is destroyed.
class LinkProbe {
 public:
  struct Context {
    Env& env;
    Loop& loop;
    transport::Network& network;
    std::string tcp_at;  // "10.0.0.7:0"
    bool shares_memory = true;
  };

  explicit LinkProbe(Context context) : context_(std::move(context)) {}

  /// Opens doors for the other nodes of a question. Doors of an earlier question close.
  NodeDoors open(const OpenDoors& order);
  /// Measures the ways to the targets, by each carrier that leads there. Calls `then` once.
  void measure(ProbeLinks order, std::function<void(NodeLinks)> then);

 private:
  struct Measuring;

  std::string open_at(const std::string& place, int carrier, const OpenDoors& order);
  void go_on(const std::shared_ptr<Measuring>& measuring);
  void send_by(std::unique_ptr<transport::Sender> sender,
               const std::shared_ptr<Measuring>& measuring);

  const Context context_;
  MemoryPool memory_;  // Outlives the doors and all tensors.
  std::vector<std::unique_ptr<transport::Door>> doors_;
  std::vector<std::unique_ptr<transport::Receiver>> receivers_;
  std::optional<Loop::Timer> closing_;
};

}  // namespace troupe::actors
