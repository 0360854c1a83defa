#include <array>
#include <cstring>
#include <set>
#include <string>

#include "catch.h"
#include "sim_device/sim_world.h"

using namespace troupe;
using namespace troupe::transport;
using namespace sim_device;

namespace {

/// The links of two devices without the rules of edges.h, which shows that the traps exist.
struct TwoDevices {
  void connect(std::size_t links) {
    for (std::size_t i = 0; i < links; ++i) {
      const auto id = fabrics[0]->name_link().value();
      ends[0].push_back(fabrics[0]->begin(id, LinkSide::sends).value());
      ends[1].push_back(fabrics[1]->begin(id, LinkSide::receives).value());
    }
    settle();
    for (std::size_t i = 0; i < links; ++i) {
      post(0, i, from);
      post(1, i, to);
      settle();
      REQUIRE(ends[1][i]->report().ended == 1);
    }
  }
  void post(int device, std::size_t link, std::vector<std::byte>& memory) {
    const Piece piece{memory.data(), memory.size()};
    ends[static_cast<std::size_t>(device)][link]->post({&piece, 1});
  }
  void settle() {
    while (world.step()) continue;
  }
  bool ends_in_time(int device) {
    settle();
    return fabrics[static_cast<std::size_t>(device)]->ended();
  }
  void give_back(int device, std::size_t link) {
    std::vector<std::unique_ptr<Link>> links;
    links.push_back(std::move(ends[static_cast<std::size_t>(device)][link]));
    fabrics[static_cast<std::size_t>(device)]->end(std::move(links));
  }
  ~TwoDevices() {
    for (std::size_t i = 0; i < 2; ++i) {
      std::erase(ends[i], nullptr);
      fabrics[i]->end(std::move(ends[i]));
    }
  }

  std::vector<std::byte> from = std::vector<std::byte>(1000, std::byte{7});
  std::vector<std::byte> to = std::vector<std::byte>(1000);
  SimWorld world{1};
  int devices[2] = {world.add_device(), world.add_device()};
  std::array<std::unique_ptr<Fabric>, 2> fabrics{world.fabric(0), world.fabric(1)};
  std::array<std::vector<std::unique_ptr<Link>>, 2> ends;
};

}  // namespace

TEST_CASE_METHOD(TwoDevices, "a receive without a send blocks everything behind it", "[edges]") {
  connect(1);
  bool done = false;
  post(1, 0, to);
  settle();
  ends[1][0]->join();
  world.give(1, [&] { done = true; });
  settle();
  CHECK_FALSE(done);
  CHECK(world.occupied(1));
  post(0, 0, from);
  settle();
  CHECK(done);
  CHECK(to == from);
}

TEST_CASE_METHOD(TwoDevices, "a posted operation does not wait for its device's work", "[edges]") {
  connect(1);
  bool done[2] = {};
  for (int i = 0; i < 2; ++i) {
    world.hold_up(devices[i]);
    world.give(devices[i], [&done, i] { done[i] = true; });
  }
  from.assign(from.size(), std::byte{8});
  post(0, 0, from);
  post(1, 0, to);
  settle();
  CHECK(ends[0][0]->report().ended == 2);
  CHECK(ends[1][0]->report().ended == 2);
  CHECK(to == from);
  CHECK_FALSE((done[0] || done[1]));
  CHECK(world.misuses().empty());
}

TEST_CASE_METHOD(TwoDevices, "posting memory that pending work still uses is a misuse", "[edges]") {
  connect(1);
  const int device = GENERATE(0, 1);
  auto& memory = device == 0 ? from : to;
  world.hold_up(device);
  world.give(device, [] {}, {{memory.data() + 999, 1}});
  post(device, 0, memory);
  CHECK(world.misuses() == std::set<std::string>{"posted what its device has yet to use"});
}

TEST_CASE_METHOD(TwoDevices, "links that are aborted one after the other hang", "[edges]") {
  connect(2);
  post(1, 0, to);
  post(1, 1, to);
  settle();
  give_back(1, 0);
  CHECK_FALSE(ends_in_time(1));
}

TEST_CASE_METHOD(TwoDevices, "links that are aborted together do not hang", "[edges]") {
  connect(2);
  post(1, 0, to);
  post(1, 1, to);
  settle();
  fabrics[1]->end(std::move(ends[1]));
  ends[1].clear();
  CHECK(ends_in_time(1));
}

TEST_CASE_METHOD(TwoDevices, "an aborted receive ends with garbage, and later work begins",
                 "[edges]") {
  connect(1);
  std::byte seen{};
  post(1, 0, to);
  settle();
  ends[1][0]->join();
  world.give(1, [&] { seen = to[500]; });
  give_back(1, 0);
  CHECK(ends_in_time(1));
  CHECK(seen == garbage);
}

TEST_CASE_METHOD(TwoDevices, "the death of a device is found by polling, if it is reported at all",
                 "[edges]") {
  connect(1);
  post(1, 0, to);
  world.kill(0);
  settle();
  CHECK(ends[1][0]->report().phase == LinkReport::Phase::ready);
  world.set_deaths(SimWorld::Deaths::told);
  settle();
  CHECK(ends[1][0]->report().phase == LinkReport::Phase::broken);
  CHECK(ends[1][0]->report().ended == 1);
}

namespace {

/// Two devices that sum, and one operation of each.
struct TwoThatAdd : TwoDevices {
  TwoThatAdd() {
    const auto id = fabrics[0]->name_link().value();
    for (int i = 0; i < 2; ++i)
      ends[static_cast<std::size_t>(i)].push_back(
          fabrics[static_cast<std::size_t>(i)]->begin_adding(id, {i, 2}).value());
    settle();
    for (int i = 0; i < 2; ++i) post(i, 1, 1);
    settle();
    REQUIRE(world.transfers() == 1);
  }
  /// Posts an operation with these numbers of elements for the two members.
  void post(int device, std::size_t first, std::size_t second) {
    auto& own = numbers[static_cast<std::size_t>(device)];
    own.assign(first + second, static_cast<float>(1 + device));
    auto* bytes = reinterpret_cast<std::byte*>(own.data());
    const std::array<Piece, 2> pieces{Piece{bytes, first * sizeof(float)},
                                      Piece{bytes + first * sizeof(float), second * sizeof(float)}};
    ends[static_cast<std::size_t>(device)][0]->post(pieces);
    settle();
  }
  std::uint64_t ended(int device) {
    return ends[static_cast<std::size_t>(device)][0]->report().ended;
  }

  std::vector<float> numbers[2];
};

}  // namespace

TEST_CASE_METHOD(TwoThatAdd,
                 "a sum that a member does not join blocks the members that get a part of it",
                 "[edges]") {
  post(0, 100, 100);
  CHECK(world.occupied(0));
  post(1, 100, 100);
  CHECK_FALSE(world.occupied(0));
  CHECK(numbers[0][99] == 3);
  CHECK(numbers[1][100] == 3);
  // Nothing of the other member's piece is left here.
  CHECK(numbers[0][100] != 3);
  CHECK(numbers[0][100] != 1);
}

TEST_CASE_METHOD(TwoThatAdd,
                 "a member that gets nothing of a small sum may finish before others join",
                 "[edges]") {
  post(0, 0, 8);
  CHECK(ended(0) == 2);
  CHECK_FALSE(world.occupied(0));
  post(1, 0, 8);
  CHECK(numbers[1][7] == 3);
}

TEST_CASE_METHOD(TwoThatAdd, "an aborted sum ends with garbage", "[edges]") {
  post(0, 100, 100);
  give_back(0, 0);
  CHECK(ends_in_time(0));
  CHECK(std::memcmp(numbers[0].data(), numbers[0].data() + 50, 200) == 0);
  CHECK(numbers[0][0] != 1);
}

TEST_CASE_METHOD(TwoThatAdd, "sums of different sizes are a misuse", "[edges]") {
  post(0, 100, 100);
  post(1, 101, 99);
  CHECK(world.misuses() == std::set<std::string>{"a sum met one of another size"});
}
