#include "schedules/simulate/cluster.h"

#include <limits>

#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

Result<Cluster> read(std::string_view json) {
  const auto root = parse_json(json);
  REQUIRE(root.ok());
  return read_cluster(*root);
}

std::string error(std::string_view json) { return read(json).error().text; }

}  // namespace

TEST_CASE("a cluster file lists nodes with their devices, memory and speed", "[schedules]") {
  const auto cluster = read(R"({
    "between_zones": {"bandwidth": "1Gbit/s", "latency": "2ms"},
    "nodes": [
      {"name": "big", "count": 2, "devices": 2, "memory": "16GiB", "speed": [1, 0.5],
       "inside": {"bandwidth": "20GB/s", "latency": "5us"},
       "outside": {"bandwidth": "10Gbit/s", "latency": "50us"}, "zone": "a"},
      {"name": "old", "memory": 1000000000, "outside": {"bandwidth": "8 Gbit/s"}, "zone": "b"}
    ]})");
  REQUIRE(cluster.ok());
  REQUIRE(cluster->nodes.size() == 3);
  CHECK(cluster->device_count() == 5);
  CHECK(cluster->nodes[1].name == "big1");
  CHECK(cluster->nodes[1].devices[1] == ClusterDevice{.speed = 0.5, .memory = Bytes{16} << 30});
  CHECK(cluster->nodes[0].same_class(cluster->nodes[1]));
  CHECK_FALSE(cluster->nodes[0].same_class(cluster->nodes[2]));
  CHECK(cluster->nodes[2].devices[0] == ClusterDevice{.speed = 1, .memory = 1'000'000'000});
  CHECK(places(*cluster)[3] == DevicePlace{.node = 1, .device = 1});
  CHECK(to_string(*cluster, {.node = 1, .device = 1}) == "big1:1");
}

TEST_CASE("devices take the GPUs of a machine in turn and share their memory", "[schedules]") {
  const auto on = [](std::size_t devices, const std::vector<Bytes>& gpus) {
    Cluster cluster;
    auto& node = cluster.nodes.emplace_back();
    node.name = "here";
    node.devices.resize(devices);
    put_on_gpus(node.devices, gpus);
    std::string text;
    for (const DevicePlace place : places(cluster))
      text += to_string(cluster, place) + " " + std::to_string(at(cluster, place).memory) + "\n";
    return text;
  };
  CHECK(on(2, {80, 80, 10}) == "here:gpu0 80\nhere:gpu1 80\n");
  CHECK(on(2, {80, 10}) == "here:gpu0 10\nhere:gpu1 10\n");
  CHECK(on(3, {80, 60}) == "here:gpu0 30\nhere:gpu1 30\nhere:gpu0 30\n");
  CHECK(on(2, {unknown_memory}) == "here:gpu0 1125899906842624\nhere:gpu0 1125899906842624\n");
}

TEST_CASE("the slowest link on the path between two devices determines its cost", "[schedules]") {
  const auto cluster = read(R"({
    "between_zones": {"bandwidth": "1MB/s", "latency": "2ms"},
    "nodes": [
      {"name": "a", "devices": 2, "memory": "1GiB", "inside": {"bandwidth": "9MB/s"},
       "outside": {"bandwidth": "4MB/s", "latency": "10us"}, "zone": "x"},
      {"name": "b", "memory": "1GiB", "outside": {"bandwidth": "3MB/s"}, "zone": "x"},
      {"name": "c", "memory": "1GiB", "outside": {"latency": "5us"}, "zone": "y"}
    ]})");
  REQUIRE(cluster.ok());
  const auto between = [&](DevicePlace a, DevicePlace b) { return link_between(*cluster, a, b); };
  CHECK(between({0, 0}, {0, 0}).bandwidth == std::numeric_limits<double>::infinity());
  CHECK(between({0, 0}, {0, 1}).bandwidth == 9e6);
  CHECK(between({0, 0}, {1, 0}).bandwidth == 3e6);
  CHECK(between({0, 0}, {1, 0}).latency == 10 * 1e-6);
  CHECK(between({1, 0}, {2, 0}).bandwidth == 1e6);
  CHECK(between({1, 0}, {2, 0}).latency == 2 * 1e-3);
}

TEST_CASE("an error in a cluster file names its line and column", "[schedules]") {
  CHECK(error("[]") == "1:1: a cluster must be a map, not a list");
  CHECK(error("{}") == "1:1: \"nodes\" must be a list of at least one node");
  CHECK(error(R"({"nodes": [{"name": "a"}]})") ==
        "1:12: \"memory\" must be given, such as \"16GiB\"");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": "16 lb"}]})") ==
        "1:36: \"memory\" must be bytes, such as \"16GiB\" or 17179869184");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": -5}]})") ==
        "1:36: \"memory\" must be bytes, such as \"16GiB\" or 17179869184");
  CHECK(error(R"({"nodes": [{"memory": 5}]})") ==
        "1:12: \"name\" must be given, as a text that is not empty");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5, "cores": 2}]})") ==
        "1:39: unknown key \"cores\"   (keys here: name, count, devices, speed, memory, inside, "
        "outside, zone)");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5, "devices": 2, "speed": [1]}]})") ==
        "1:62: \"speed\" lists 1 values for 2 devices");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5, "speed": 0}]})") ==
        "1:48: \"speed\" must be a number from 0.001 to 1000");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5, "inside": {"bandwidth": "10"}}]})") ==
        "1:63: \"bandwidth\" must be a text such as \"10Gbit/s\" or \"2GB/s\"");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5, "count": 99999999}]})") ==
        "1:48: \"count\" must be a whole number from 1 to 65536");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5, "count": 65536, "devices": 1024}]})") ==
        "1:12: more than 65536 nodes or devices");
  CHECK(error(R"({"nodes": [{"name": "a", "memory": 5}, {"name": "a", "memory": 5}]})") ==
        "1:40: there are two nodes with the name \"a\"");
}
