#include "actors/nodes/mesh_edges.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"
#include "sim_device/sim_world.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using std::chrono::milliseconds;

bool comes_true(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return holds();
}

/// The devices that hold each stage.
using SumsOfStages = std::vector<std::vector<int>>;

/// A process with one of two devices, and its connection to the other process.
struct OneOfTwo final : transport::Sender {
  OneOfTwo(sim_device::SimWorld& world, int here, milliseconds form, const SumsOfStages& sums)
      : edges({.epoch = {{1, 2}, 3},
               .bound = {1000, 10},
               .linked = {{here == 0 ? &device : nullptr, here == 1 ? &device : nullptr},
                          {{0, 1}, {}, {{0, 1}, {1, 0}}, sums},
                          {form, milliseconds(20'000), milliseconds(20'000), milliseconds(20'000)}},
               .on_parcel =
                   [this](int, transport::Parcel parcel) {
                     heard = parcel.tensors[0].data<std::int32_t>()[0];
                   },
               .on_lost = [this](int, const std::string& why) { lost = why; }}) {
    link("played", std::to_string(here), {}, world);
  }
  /// Adds links that are preferred over the present ones.
  void link(const std::string& kind, const std::string& place,
            const std::vector<std::string>& reaches, sim_device::SimWorld& world) {
    device.links.insert(
        device.links.begin(),
        std::make_unique<DeviceLinks>(kind, place, reaches, world.fabric(world.add_device())));
  }

  Tensor lend(const Shape& shape, DType type) override { return Tensor::make(memory, shape, type); }
  Status send(std::span<const std::byte> head, std::span<const Tensor>) override {
    other->edges.hear(0, head);
    ++said;
    return Done{};
  }
  Status close(milliseconds) override { return Done{}; }
  transport::ChannelCounters counters() const override { return {}; }

  Status form() {
    std::vector<std::vector<LinkPlace>> places{edges.places(), other->edges.places()};
    if (places[0][0].device == 1) std::swap(places[0], places[1]);
    return edges.form(places, {this, this});
  }

  MemoryPool memory;
  LinkedDevice device{memory};
  std::atomic<int> said{0};
  std::atomic<std::int32_t> heard{0};
  std::string lost;
  OneOfTwo* other = nullptr;
  MeshEdges edges;  // Last: it uses the members above.
};

struct Two {
  explicit Two(milliseconds form, const SumsOfStages& sums = {})
      : one(world, 0, form, sums), two(world, 1, form, sums) {
    one.other = &two;
    two.other = &one;
  }
  /// Forms both ends at once.
  bool form() {
    Status first = Done{};
    std::thread sooner([&] { first = one.form(); });
    const auto second = two.form();
    sooner.join();
    return first.ok() && second.ok();
  }
  ~Two() {
    CHECK(one.edges.end().ok());
    CHECK(two.edges.end().ok());
    stopping = true;
    devices.join();
  }

  sim_device::SimWorld world{1}, near{2};
  OneOfTwo one, two;
  std::atomic<bool> stopping{false};
  std::thread devices{[this] {
    while (!stopping)
      if (!world.step() && !near.step()) std::this_thread::yield();
  }};
};

}  // namespace

TEST_CASE("an edge word that arrives before its edge is open is kept", "[actors]") {
  Two pair(milliseconds(20'000));
  auto &one = pair.one, &two = pair.two;
  Status first = Done{};
  std::thread sooner([&] { first = one.form(); });
  CHECK(comes_true([&] { return one.said > 0; }));
  const auto second = two.form();
  sooner.join();
  REQUIRE((first.ok() && second.ok()));

  Tensor tensor = one.lend({3}, DType::i32);
  tensor.data<std::int32_t>()[0] = 7;
  auto* edge = one.edges.edge({PlayerId::Kind::stage, 1}, 0, {&tensor, 1});
  REQUIRE(edge);
  CHECK(edge->send({}, {&tensor, 1}).ok());
  CHECK(comes_true([&] { return two.heard == 7; }));
  CHECK(pair.world.misuses().empty());
}

TEST_CASE("a tensor outside the device's memory uses no edge", "[actors]") {
  Two pair(milliseconds(20'000));
  REQUIRE(pair.form());
  const PlayerId next{PlayerId::Kind::stage, 1}, here{PlayerId::Kind::stage, 0};
  MemoryPool host;
  const std::vector<Tensor> mixed{pair.one.lend({1}, DType::i32),
                                  Tensor::make(host, {1}, DType::i32)};
  const auto all = std::span(mixed);
  const auto& edges = pair.one.edges;
  CHECK(edges.edge(next, 0, all.first(1)));
  CHECK_FALSE(edges.edge(next, 0, all));
  CHECK_FALSE(edges.edge(next, 0, {}));
  CHECK_FALSE(edges.edge(next, transport::most_head_bytes, all.first(1)));
  CHECK_FALSE(edges.edge(here, 0, all.first(1)));
  CHECK_FALSE(edges.edge({PlayerId::Kind::inputs, 0}, 0, all.first(1)));
}

TEST_CASE("link places join the places they name or all other places if they name none",
          "[actors]") {
  const LinkPlace far{0, "far", "a", {}}, other{1, "far", "b", {}};
  CHECK(are_linked(far, other));
  CHECK_FALSE(are_linked(far, far));
  const LinkPlace near{0, "near", "a", {"a", "b"}}, next{1, "near", "b", {"b", "a"}};
  CHECK(are_linked(near, near));
  CHECK(are_linked(near, next));
  CHECK_FALSE(are_linked(near, {1, "near", "b", {"b"}}));
  CHECK_FALSE(are_linked(near, {1, "near", "c", {"a", "c"}}));
  CHECK_FALSE(are_linked(near, other));
}

TEST_CASE("an edge uses the first kind of links that joins its ends", "[actors]") {
  const bool joined = GENERATE(true, false);
  Two pair(milliseconds(20'000));
  pair.one.link("near", "x", {"x"}, pair.near);
  pair.two.link("near", joined ? "x" : "y", {joined ? "x" : "y"}, pair.near);
  REQUIRE(pair.form());
  Tensor tensor = pair.one.lend({3}, DType::i32);
  tensor.data<std::int32_t>()[0] = 7;
  auto* edge = pair.one.edges.edge({PlayerId::Kind::stage, 1}, 0, {&tensor, 1});
  REQUIRE(edge);
  CHECK(edge->send({}, {&tensor, 1}).ok());
  CHECK(comes_true([&] { return pair.two.heard == 7; }));
  // Each direction is tested once, then one parcel goes.
  CHECK(pair.near.transfers() == (joined ? 3 : 0));
  CHECK(pair.world.transfers() == (joined ? 0 : 3));
  CHECK(pair.near.misuses().empty());
  CHECK(pair.world.misuses().empty());
}

TEST_CASE("the devices of a stage are summed by the first kind of links that joins them",
          "[actors]") {
  const bool joined = GENERATE(true, false);
  Two pair(milliseconds(20'000), {{}, {1, 0}});
  pair.one.link("near", "x", {"x"}, pair.near);
  pair.two.link("near", joined ? "x" : "y", {joined ? "x" : "y"}, pair.near);
  REQUIRE(pair.form());
  const auto ones = pair.one.edges.adders(), twos = pair.two.edges.adders();
  REQUIRE((ones.size() == 2 && twos.size() == 2));
  CHECK_FALSE((ones[0] || twos[0]));
  Tensor some = pair.one.lend({3}, DType::f32), others = pair.two.lend({3}, DType::f32);
  for (int i = 0; i < 3; ++i) {
    some.f32()[i] = 1;
    others.f32()[i] = static_cast<float>(i);
  }
  const std::vector<std::int64_t> sizes{1, 2};
  std::atomic<int> done{0};
  CHECK(ones[1]->add(some, sizes, [&] { ++done; }).ok());
  CHECK(twos[1]->add(others, sizes, [&] { ++done; }).ok());
  CHECK(comes_true([&] { return done == 2; }));
  // The second process has the first member, so its number comes first.
  CHECK(others.f32()[0] == 1);
  CHECK(some.f32()[1] == 2);
  CHECK(some.f32()[2] == 3);
  CHECK(pair.near.transfers() == (joined ? 4 : 0));
  CHECK(pair.near.misuses().empty());
  CHECK(pair.world.misuses().empty());
}

TEST_CASE("an end gives up a process that sends too much for unopened edges", "[actors]") {
  Two pair(milliseconds(20'000));
  const std::vector<std::byte> word(56);
  for (int i = 0; i < 4; ++i) pair.one.edges.hear(1, word);
  CHECK(pair.one.lost.empty());
  pair.one.edges.hear(1, word);
  CHECK(pair.one.lost == "it says more of edges than there is to say");
}

TEST_CASE("an aborted attempt forms no edges", "[actors]") {
  Two pair(milliseconds(20'000));
  pair.one.edges.abort("the test says so");
  const auto formed = pair.one.form();
  REQUIRE_FALSE(formed.ok());
  CHECK(formed.error().text == "the test says so");
}

TEST_CASE("an edge times out if its other end is never made", "[actors]") {
  Two pair(milliseconds(100));
  const auto formed = pair.one.form();
  REQUIRE_FALSE(formed.ok());
  CHECK(formed.error().text ==
        "tensors from device 0 to device 1: edge 1: its link was not made within 100 ms");
  CHECK(pair.one.lost == formed.error().text);
}
