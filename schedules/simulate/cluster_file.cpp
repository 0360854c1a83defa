#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>

#include "core/json.h"
#include "core/units.h"
#include "schedules/simulate/cluster.h"

namespace troupe::schedules {

namespace {

constexpr int most_nodes = 65'536;
constexpr int most_devices = 1024;   // Per node.
constexpr int most_in_all = 65'536;  // Devices of a cluster.
constexpr double most_memory = 0x1p50;

constexpr MeasureUnit bandwidths[] = {
    {"kB/s", 1e3},     {"MB/s", 1e6},   {"GB/s", 1e9},     {"TB/s", 1e12},    {"MiB/s", 0x1p20},
    {"GiB/s", 0x1p30}, {"kbit/s", 125}, {"Mbit/s", 125e3}, {"Gbit/s", 125e6}, {"Tbit/s", 125e9}};
constexpr MeasureUnit durations[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

/// Reads a tree and keeps the first error.
class ClusterReader {
 public:
  Result<Cluster> read(const Value& root) {
    if (!is_map(root, "a cluster")) return *error_;
    allow(root, {"nodes", "between_zones"});
    cluster_.between_zones = link(root, "between_zones");
    const Value* nodes = root.find("nodes");
    if (!nodes || !nodes->list() || nodes->list()->empty())
      fail(nodes ? *nodes : root, "\"nodes\" must be a list of at least one node");
    else
      for (const Value& entry : *nodes->list()) read_nodes(entry);
    if (error_) return *error_;
    return std::move(cluster_);
  }

 private:
  void read_nodes(const Value& entry) {
    if (error_ || !is_map(entry, "a node")) return;
    allow(entry, {"name", "count", "devices", "speed", "memory", "inside", "outside", "zone"});
    ClusterNode node;
    node.name = text(entry, "name");
    if (node.name.empty()) fail(entry, "\"name\" must be given, as a text that is not empty");
    node.zone = text(entry, "zone");
    node.inside = link(entry, "inside");
    node.outside = link(entry, "outside");
    node.devices.resize(count(entry, "devices", most_devices));
    read_speeds(entry, node);
    read_memories(entry, node);
    const bool several = entry.find("count");
    const int copies = count(entry, "count", most_nodes);
    for (int i = 0; i < copies && !error_; ++i) {
      ClusterNode copy = node;
      if (several) copy.name += std::to_string(i);
      add(entry, std::move(copy));
    }
  }

  void add(const Value& entry, ClusterNode node) {
    devices_ += static_cast<int>(node.devices.size());
    if (!names_.insert(node.name).second)
      fail(entry, "there are two nodes with the name \"" + node.name + "\"");
    else if (cluster_.nodes.size() == most_nodes || devices_ > most_in_all)
      fail(entry, "more than " + std::to_string(most_in_all) + " nodes or devices");
    else
      cluster_.nodes.push_back(std::move(node));
  }

  void read_speeds(const Value& entry, ClusterNode& node) {
    for_each_device(entry, "speed", node, [&](const Value& value, ClusterDevice& device) {
      device.speed = value.is_number() ? value.number() : NAN;
      if (!(device.speed >= 1e-3 && device.speed <= 1e3))
        fail(value, "\"speed\" must be a number from 0.001 to 1000");
    });
  }

  void read_memories(const Value& entry, ClusterNode& node) {
    if (!entry.find("memory")) fail(entry, "\"memory\" must be given, such as \"16GiB\"");
    for_each_device(entry, "memory", node, [&](const Value& value, ClusterDevice& device) {
      std::optional<double> bytes;
      if (const auto* integer = value.integer()) bytes = static_cast<double>(*integer);
      if (value.text())
        bytes = parse_quantity(*value.text(), byte_units(), std::chars_format::general);
      if (!bytes || *bytes < 1 || *bytes > most_memory)
        fail(value, "\"memory\" must be bytes, such as \"16GiB\" or 17179869184");
      else
        device.memory = static_cast<Bytes>(*bytes);
    });
  }

  /// Applies one value to all devices, or a list with one value for each.
  template <class Set>
  void for_each_device(const Value& entry, const std::string& key, ClusterNode& node, Set set) {
    const Value* value = entry.find(key);
    if (!value) return;
    const auto* list = value->list();
    if (list && list->size() != node.devices.size()) {
      fail(*value, "\"" + key + "\" lists " + std::to_string(list->size()) + " values for " +
                       std::to_string(node.devices.size()) + " devices");
      return;
    }
    for (std::size_t d = 0; d < node.devices.size(); ++d)
      set(list ? (*list)[d] : *value, node.devices[d]);
  }

  Link link(const Value& map, const std::string& key) {
    const Value* value = map.find(key);
    if (!value || !is_map(*value, "\"" + key + "\"")) return {};
    allow(*value, {"bandwidth", "latency"});
    Link link;
    link.bandwidth =
        measure(*value, "bandwidth", bandwidths, "\"10Gbit/s\" or \"2GB/s\"", link.bandwidth);
    link.latency = measure(*value, "latency", durations, "\"50us\"", 0);
    if (!(link.bandwidth > 0)) fail(*value, "\"bandwidth\" must be more than 0");
    return link;
  }

  double measure(const Value& map, const std::string& key, std::span<const MeasureUnit> units,
                 const std::string& example, double otherwise) {
    const Value* value = map.find(key);
    if (!value) return otherwise;
    if (value->text())
      if (const auto measured = parse_quantity(*value->text(), units, std::chars_format::general))
        return *measured;
    fail(*value, "\"" + key + "\" must be a text such as " + example);
    return otherwise;
  }

  int count(const Value& map, const std::string& key, int most) {
    const Value* value = map.find(key);
    if (!value) return 1;
    const auto* integer = value->integer();
    if (integer && *integer >= 1 && *integer <= most) return static_cast<int>(*integer);
    fail(*value, "\"" + key + "\" must be a whole number from 1 to " + std::to_string(most));
    return 1;
  }

  std::string text(const Value& map, const std::string& key) {
    const Value* value = map.find(key);
    if (value && !value->text())
      fail(*value, "\"" + key + "\" must be a text, not " + std::string(describe(value->kind())));
    return value && value->text() ? *value->text() : "";
  }

  bool is_map(const Value& value, const std::string& what) {
    if (value.map()) return true;
    fail(value, what + " must be a map, not " + std::string(describe(value.kind())));
    return false;
  }

  void allow(const Value& map, std::initializer_list<std::string_view> keys) {
    for (const Value::Entry& entry : *map.map()) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
      std::string known;
      for (std::string_view key : keys) known += (known.empty() ? "" : ", ") + std::string(key);
      fail(entry.position, "unknown key \"" + entry.key + "\"   (keys here: " + known + ")");
    }
  }

  void fail(const Value& where, const std::string& text) { fail(where.position, text); }
  void fail(Position where, const std::string& text) {
    if (error_) return;
    error_ = Error{text};
    if (where.line > 0)
      error_ = Error{std::to_string(where.line) + ":" + std::to_string(where.column) + ": " + text};
  }

  Cluster cluster_;
  std::set<std::string> names_;
  int devices_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Cluster> read_cluster(const Value& root) { return ClusterReader().read(root); }

}  // namespace troupe::schedules
