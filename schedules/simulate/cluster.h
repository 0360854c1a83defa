#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::schedules {

/// The memory of a device that did not report it: more than any device has.
constexpr Bytes unknown_memory = Bytes{1} << 50;

/// A device: its speed relative to the device of the costs, and its memory. Equality ignores names.
struct ClusterDevice {
  double speed = 1;
  Bytes memory = 0;
  std::string name = {};  // For example "gpu0"; if empty, its number in the node is printed.

  friend bool operator==(const ClusterDevice& a, const ClusterDevice& b) {
    return a.speed == b.speed && a.memory == b.memory;
  }
};

/// A machine with its devices.
struct ClusterNode {
  std::string name;
  std::string zone;  // Nodes of one zone fail together.
  std::vector<ClusterDevice> devices;
  Link inside;   // Between two devices of this node.
  Link outside;  // To and from other nodes.

  /// Returns whether two nodes are equal except for their names, so that losing either is the same.
  bool same_class(const ClusterNode& other) const;
};

/// Assigns a machine's GPUs to its devices in turn, as runs do; `gpus` holds their bytes and is not
/// empty. Every device gets the same memory: that of the smallest used GPU, divided by the most
/// devices on one GPU.
void put_on_gpus(std::vector<ClusterDevice>& devices, const std::vector<Bytes>& gpus);

/// The nodes that a run may use: from `--cluster FILE`, or those that joined the head.
struct Cluster {
  std::vector<ClusterNode> nodes;
  Link between_zones;  // Applies in addition to the two nodes' own links.
  /// Measured links between nodes of two zones, or of one zone, in alphabetical order. They replace
  /// the nodes' own links and `between_zones`.
  std::map<std::pair<std::string, std::string>, Link> measured;

  int device_count() const;
};

/// A device of a cluster: its node, and its number in the node.
struct DevicePlace {
  int node = 0;
  int device = 0;

  friend auto operator<=>(const DevicePlace&, const DevicePlace&) = default;
};

/// Returns all devices, node by node.
std::vector<DevicePlace> places(const Cluster& cluster);

const ClusterDevice& at(const Cluster& cluster, DevicePlace place);

/// Names a device: "node3:1" or "node3:gpu1".
std::string to_string(const Cluster& cluster, DevicePlace place);

/// Returns the link between two devices: measured, or the slowest of those between them. Transfers
/// within a device are free.
Link link_between(const Cluster& cluster, DevicePlace from, DevicePlace to);

/// Reads the tree of a cluster file:
///
///     between_zones = { bandwidth = "1Gbit/s", latency = "2ms" }
///
///     [[nodes]]
///     name      = "big"          # big0, big1, ... if count is given
///     count     = 2
///     devices   = 4
///     speed     = 1.0            # a number for all, or a list with one for each device
///     memory    = "16GiB"        # one size for all, or a list
///     inside    = { bandwidth = "20GB/s", latency = "5us" }
///     outside   = { bandwidth = "10Gbit/s", latency = "50us" }
///     zone      = "a"
///
/// Only `name` and `memory` are required. Errors name the key and begin with "line:column: " if
/// positions are known.
Result<Cluster> read_cluster(const Value& root);

}  // namespace troupe::schedules
