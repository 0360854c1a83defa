#include <array>
#include <cstring>

#include "catch.h"
#include "sim_device/sim_world.h"

using namespace troupe;
using namespace troupe::transport;
using namespace sim_device;

namespace {

/// What the links of two devices do, without the rules of edges.h: so the traps are seen to be
/// there.
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

TEST_CASE_METHOD(TwoDevices, "a receive that nobody meets holds up all that is behind it",
                 "[edges]") {
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

TEST_CASE_METHOD(TwoDevices, "links that are aborted one after the other hang", "[edges]") {
  connect(2);
  post(1, 0, to);
  post(1, 1, to);
  settle();
  give_back(1, 0);
  CHECK_FALSE(ends_in_time(1));
}

TEST_CASE_METHOD(TwoDevices, "links that are aborted together do not", "[edges]") {
  connect(2);
  post(1, 0, to);
  post(1, 1, to);
  settle();
  fabrics[1]->end(std::move(ends[1]));
  ends[1].clear();
  CHECK(ends_in_time(1));
}

TEST_CASE_METHOD(TwoDevices, "an aborted receive ends with garbage, and what is behind it begins",
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

TEST_CASE_METHOD(TwoDevices, "the death of a device is found by asking, where it is told at all",
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
