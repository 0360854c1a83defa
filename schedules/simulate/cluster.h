#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::schedules {

/// Of a device whose memory nobody has told: more than any has.
constexpr Bytes unknown_memory = Bytes{1} << 50;

/// One device: how many times as fast as the one that the costs are for, and its memory. Devices
/// that are equal in that may have other names.
struct ClusterDevice {
  double speed = 1;
  Bytes memory = 0;
  std::string name = {};  // "gpu0"; or empty: then its number in the node stands for it.

  friend bool operator==(const ClusterDevice& a, const ClusterDevice& b) {
    return a.speed == b.speed && a.memory == b.memory;
  }
};

/// A machine with its devices.
struct ClusterNode {
  std::string name;
  std::string zone;  // Nodes of one zone fail together.
  std::vector<ClusterDevice> devices;
  Link inside;   // Between two of its devices.
  Link outside;  // To and from other nodes.

  /// Equal in all but the name: which of them goes makes no difference.
  bool same_class(const ClusterNode& other) const;
};

/// Gives the devices of a machine its GPUs, in turn as runs do, each of which has so many bytes.
/// Where several devices share one, and where GPUs differ, each device has as much as the one that
/// has least. There is at least one GPU.
void put_on_gpus(std::vector<ClusterDevice>& devices, const std::vector<Bytes>& gpus);

/// Where a run may go: `--cluster FILE`, or what has joined the head.
struct Cluster {
  std::vector<ClusterNode> nodes;
  Link between_zones;  // Applies on top of the two nodes' own links.

  int device_count() const;
};

/// A device of a cluster: its node and its number there.
struct DevicePlace {
  int node = 0;
  int device = 0;

  friend auto operator<=>(const DevicePlace&, const DevicePlace&) = default;
};

/// All devices, node by node.
std::vector<DevicePlace> places(const Cluster& cluster);

const ClusterDevice& at(const Cluster& cluster, DevicePlace place);

/// "node3:1", "node3:gpu1"
std::string to_string(const Cluster& cluster, DevicePlace place);

/// The slowest part of the way from one device to another; free within a device.
Link link_between(const Cluster& cluster, DevicePlace from, DevicePlace to);

/// The tree of a cluster file:
///
///     between_zones = { bandwidth = "1Gbit/s", latency = "2ms" }
///
///     [[nodes]]
///     name      = "big"          # big0, big1, ... where count is given
///     count     = 2
///     devices   = 4
///     speed     = 1.0            # a number for all, or a list with one for each device
///     memory    = "16GiB"        # likewise
///     inside    = { bandwidth = "20GB/s", latency = "5us" }
///     outside   = { bandwidth = "10Gbit/s", latency = "50us" }
///     zone      = "a"
///
/// Only `name` and `memory` must be given. An error begins with "line:column: ", where positions
/// are known, and names the key.
Result<Cluster> read_cluster(const Value& root);

}  // namespace troupe::schedules
