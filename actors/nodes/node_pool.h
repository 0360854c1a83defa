#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/nodes/node_messages.h"
#include "core/result.h"
#include "kernels/linear.h"
#include "transport/wire/wire.h"

namespace troupe::actors {

/// A node, as the head knows it.
struct NodeHere {
  std::uint64_t incarnation = 0;  // Its life: random and never reused.
  std::string name;
  Inventory inventory;
  bool cordoned = false;  // Gets no new work.
  bool away = false;      // Not heard of now, but may come back. Gets no new work.
  std::string key = {};   // The public key it connected with; empty for plain connections.
  std::vector<GpuReading> gpus = {};  // The last readings,
  Time gpus_told = {};                // and their time.
  MachineLoad load = {};              // The last one,
  Time load_told = {};                // and its time.
  Time joined = {};
  std::vector<MeasuredLink> links = {};  // To other hosts.

  /// Returns the readings, or nothing if they are too old.
  std::vector<GpuReading> gpus_at(Time now) const;
  MachineLoad load_at(Time now) const;
  /// Returns a title that tells lives of one name apart: "node alpha (process 4711)".
  std::string title() const {
    return "node " + name + " (process " + std::to_string(inventory.pid) + ")";
  }
};

/// The reason why a node is gone.
struct NodeLoss {
  std::string why;
  bool has_ended = false;  // Its daemon reports that the process has ended.
  int signal = 0;          // The signal that ended it.
};

/// Returns the precision of this name; unknown names mean fp32, which every node has.
kernels::Precision precision_named(std::string_view name);

/// Returns whether a node's processor has fast matrix products in this precision or a better one.
/// Any processor can compute in all of them; without the instructions it is slow.
bool has(const Inventory& inventory, kernels::Precision precision);

/// Returns the speed of each node's cores as a part of the fastest core's, rounded to coarse
/// levels: 1, 2/3, 4/9, ... Measurements vary, and small differences must move nobody. Other work
/// slows measurements down, so the fastest node of a host counts for all of them. A node that
/// nobody has measured has level 1. `rate`: the measurement to use.
std::vector<double> core_levels(const std::vector<NodeHere>& nodes, double Speed::*rate);
/// Replaces measured speeds by their levels, so that equal processors are equal to a planner.
void level_speeds(std::vector<NodeHere>& nodes);

/// Drops figures of links that are too old.
void drop_old_links(std::vector<NodeHere>& nodes, Time now);

/// Names the nodes that do not: "beta, gamma: nothing better than fp32". Empty if all do.
std::string who_lacks(kernels::Precision precision, const std::vector<NodeHere>& nodes);

/// The nodes that are there, in the order in which they joined. Thread-safe.
class NodePool {
 public:
  using Send = std::function<Status(std::uint64_t incarnation, const transport::Message&)>;

  /// Handles a node that sent an invalid message.
  using Strike = std::function<void(std::uint64_t incarnation, const std::string& why)>;

  explicit NodePool(
      Send send, Strike strike = [](std::uint64_t, const std::string&) {})
      : send_(std::move(send)), strike_(std::move(strike)) {}

  /// Adds a node. If its wanted name is taken, a number is appended.
  NodeHere add(std::uint64_t incarnation, std::string wanted, Inventory inventory,
               std::string key = {}, Time now = {});
  /// Removes a node and returns it.
  std::optional<NodeHere> remove(std::uint64_t incarnation);
  bool cordon(const std::string& name, bool cordoned);
  void set_away(std::uint64_t incarnation, bool away);
  void set_gpus(std::uint64_t incarnation, std::vector<GpuReading> gpus, Time now);
  void set_load(std::uint64_t incarnation, const MachineLoad& load, Time now);
  void add_link(std::uint64_t incarnation, const std::string& host, const LinkFigures& figures,
                Time now);
  std::optional<NodeHere> find(std::uint64_t incarnation) const;

  std::vector<NodeHere> all() const;
  /// Returns nodes that may get new work and support at least this precision.
  std::vector<NodeHere> usable(kernels::Precision least = kernels::Precision::fp32) const;
  /// Returns how many nodes usable() would return.
  int count_usable(kernels::Precision least = kernels::Precision::fp32) const;

  Status send(std::uint64_t incarnation, const transport::Message& message) const {
    return send_(incarnation, message);
  }
  void strike(std::uint64_t incarnation, const std::string& why) const {
    strike_(incarnation, why);
  }

 private:
  NodeHere* find_here(std::uint64_t incarnation);

  Send send_;
  Strike strike_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, NodeHere> nodes_;  // Keyed by a number that grows with each join.
  std::uint64_t joins_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> by_incarnation_;  // The keys in `nodes_`.
  std::unordered_map<std::string, std::uint64_t> by_name_;
};

}  // namespace troupe::actors
