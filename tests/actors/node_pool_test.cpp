#include "actors/nodes/node_pool.h"

#include <chrono>
#include <cmath>
#include <cstdint>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

TEST_CASE("readings of GPUs and of a machine's load expire after a while", "[actors]") {
  NodePool pool([](std::uint64_t, const transport::Message&) -> Status { return Done{}; });
  const Time start{};
  pool.add(7, "alpha", {});
  CHECK(pool.find(7)->gpus_at(start).empty());
  GpuReading gpu;
  gpu.number = 1;
  pool.set_gpus(7, {gpu}, start + 20s);
  pool.set_gpus(8, {gpu, gpu}, start + 20s);  // No node has this incarnation.
  CHECK(pool.find(7)->gpus_at(start + 29s).size() == 1);
  CHECK(pool.find(7)->gpus_at(start + 30s).empty());
  pool.set_load(7, {.busy = 0.5, .memory = 7}, start + 20s);
  pool.set_load(8, {.busy = 0.5, .memory = 7}, start + 20s);
  CHECK(pool.find(7)->load_at(start + 29s).busy == 0.5);
  CHECK(pool.find(7)->load_at(start + 29s).memory == 7);
  CHECK_FALSE(pool.find(7)->load_at(start + 30s).busy);
}

TEST_CASE("a pool finds each of its nodes, in the order in which they joined", "[actors]") {
  NodePool pool([](std::uint64_t, const transport::Message&) -> Status { return Done{}; });
  constexpr std::uint64_t count = 4096;
  // Incarnations fall, so that their order is not that of joining.
  for (auto life = count; life > 0; --life) pool.add(life, life % 2 == 0 ? "even" : "", {});
  CHECK(pool.find(count)->name == "even");
  CHECK(pool.find(count - 2)->name == "even-2");
  CHECK(pool.all().front().incarnation == count);
  CHECK(pool.all().back().incarnation == 1);
  CHECK(pool.count_usable() == count);
  CHECK(pool.cordon("even", true));
  pool.set_away(1, true);
  CHECK(pool.count_usable() == count - 2);
  CHECK(pool.usable().size() == count - 2);
  CHECK(pool.usable(kernels::Precision::bf16_pairs).empty());
  // A name is free again once its node is gone.
  CHECK(pool.remove(count)->name == "even");
  CHECK_FALSE(pool.remove(count));
  CHECK_FALSE(pool.cordon("even", true));
  CHECK(pool.add(count + 1, "even", {}).name == "even");
  CHECK(pool.all().back().incarnation == count + 1);
}

TEST_CASE("a value that a GPU does not report is absent after encoding and decoding", "[actors]") {
  GpuReading gpu;
  gpu.number = 3;
  gpu.busy = 0;
  auto message = transport::to_message(GpuReadings{{gpu}});
  const auto& body = message.body.find("gpus")->list()->front();
  CHECK(body.map()->size() == 2);
  const auto read = transport::from_message<GpuReadings>(message);
  REQUIRE(read);
  CHECK(read->gpus[0].busy == 0.0);
  CHECK_FALSE(read->gpus[0].watts);
  CHECK_FALSE(read->gpus[0].slowed_by);
  // Unknown fields of a newer version are ignored.
  message.body.find("gpus")->list()->front().set("fans", 2);
  CHECK(transport::from_message<GpuReadings>(message).ok());
}

TEST_CASE("a pool keeps the best figures of a node's links for a while", "[actors]") {
  NodePool pool([](std::uint64_t, const transport::Message&) -> Status { return Done{}; });
  const Time start{};
  pool.add(7, "alpha", {}, "", start);
  pool.add_link(7, "beta", {0.05, {}}, start);
  pool.add_link(7, "beta", {0.06, 1e6}, start + 1s);
  pool.add_link(7, "beta", {0.05, 2e5}, start + 2s);
  pool.add_link(7, "gamma", {0.001, {}}, start + 2s);
  pool.add_link(8, "beta", {1, {}}, start);  // No node has this incarnation.
  auto links = pool.find(7)->links;
  REQUIRE(links.size() == 2);
  CHECK(links[0].host == "beta");
  CHECK(links[0].best.latency == 0.05);
  CHECK(links[0].best.bytes_per_second == 1e6);
  CHECK_FALSE(links[1].best.bytes_per_second);
  // A link that nobody has measured for an hour is unknown.
  pool.add_link(7, "beta", {0.05, {}}, start + 1h + 1s);
  CHECK(pool.find(7)->links.size() == 2);
  pool.add_link(7, "beta", {0.05, {}}, start + 1h + 3s);
  CHECK(pool.find(7)->links.size() == 1);
}

TEST_CASE("a link that becomes slow counts as slow after some minutes of reports", "[actors]") {
  std::vector<MeasuredLink> links;
  Time now{};
  for (int report = 0; report < 20; ++report) add_link(links, "beta", {0.001, 1e8}, now += 30s);
  // One slow report changes nothing.
  add_link(links, "beta", {0.5, 1e4}, now += 30s);
  CHECK(links[0].best.latency == 0.001);
  CHECK(links[0].best.bytes_per_second == 1e8);
  const auto begun = now;
  while (links[0].best.latency == 0.001 && now - begun < 1h)
    add_link(links, "beta", {0.05, 1e6}, now += 30s);
  CHECK(links[0].best.latency == 0.05);
  CHECK(links[0].best.bytes_per_second == 1e6);
  CHECK(now - begun >= 9min);
  CHECK(now - begun <= 20min);
  // It is fast again at once.
  add_link(links, "beta", {0.001, 1e8}, now += 30s);
  CHECK(links[0].best.latency == 0.001);
}

TEST_CASE("the links of a node to many hosts take bounded memory", "[actors]") {
  std::vector<MeasuredLink> links;
  for (int host = 0; host < 1000; ++host)
    add_link(links, "host" + std::to_string(host), {0.001, 1e8}, Time{});
  CHECK(links.size() == most_links);
  CHECK(links.front().host == "host0");
}

TEST_CASE("figures of paths are believed only within bounds", "[actors]") {
  const auto read = [](Path path) {
    const auto message = transport::from_message<Paths>(transport::to_message(Paths{{path}}));
    return message ? may(*message, 1, 3) : Status(message.error());
  };
  CHECK(read({0, 0.05, 1e6}).ok());
  CHECK(read({2, 0, {}}).ok());
  CHECK(read({1, 0.05, {}}).error().text ==
        "paths: found a path to process 1, wanted another process of 3");
  CHECK_FALSE(read({3, 0.05, {}}));
  CHECK_FALSE(read({-1, 0.05, {}}));
  CHECK_FALSE(read({0, -0.05, {}}));
  CHECK_FALSE(read({0, 100, {}}));
  CHECK_FALSE(read({0, 0.05, 0.5}));
  CHECK_FALSE(read({0, 0.05, 1e13}));
  CHECK(may(Paths{{{0, 0.1, {}}, {0, 0.2, {}}}}, 1, 3).error().text ==
        "paths: found two paths to process 0");
}

TEST_CASE("small differences between measured speeds do not count", "[actors]") {
  std::vector<NodeHere> nodes;
  const auto add = [&](const std::string& host, int cores, double rate) {
    auto& node = nodes.emplace_back();
    node.inventory.host = host;
    node.inventory.cores = cores;
    if (rate > 0) node.inventory.speed = Speed{cores * rate, 2 * cores * rate, 0};
  };
  add("new", 4, 3e11);
  add("similar", 1, 2.5e11);
  add("old", 2, 1.9e11);
  add("old", 2, 1.1e11);  // Other work disturbed it.
  add("unknown", 8, 0);
  const double lower = std::pow(1.5, -1.0);
  CHECK(core_levels(nodes, &Speed::plain) == std::vector<double>{1, 1, lower, lower, 1});
  level_speeds(nodes);
  CHECK(nodes[0].inventory.speed->plain == 12e11);
  CHECK(nodes[1].inventory.speed->plain == 3e11);
  CHECK(nodes[1].inventory.speed->best == 6e11);
  CHECK(nodes[2].inventory.speed->plain == 6e11 * lower);
  CHECK(nodes[3].inventory.speed->plain == nodes[2].inventory.speed->plain);
  CHECK_FALSE(nodes[4].inventory.speed);
}

TEST_CASE("the speed in an inventory is believed only within bounds", "[actors]") {
  const auto is_believed = [](Speed speed) {
    Join join;
    join.inventory.speed = speed;
    return transport::from_message<Join>(transport::to_message(join)).ok();
  };
  CHECK(is_believed({1e11, 2e11, 3.5}));
  CHECK_FALSE(is_believed({0, 1e11, 0}));
  CHECK_FALSE(is_believed({1e11, 1e17, 0}));
  CHECK_FALSE(is_believed({1e11, 1e11, -1}));
}
