#include "catch.h"
#include "play.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

namespace {

/// Advances the clock until the remaining processes have noticed, have given up waiting for an
/// order, and have ended. Returns whether they have.
bool ends_by_itself(Play& play) {
  for (int i = 0; i < 8 && !play.all_are(Edges::Phase::over); ++i) {
    play.pass(patience);
    for (int step = 0; step < 1000; ++step) play.step();
  }
  return play.all_are(Edges::Phase::over);
}

}  // namespace

TEST_CASE("if a process dies at any moment, the others end in time and can form new edges",
          "[edges]") {
  const auto deaths =
      GENERATE(sim_device::SimWorld::Deaths::silent, sim_device::SimWorld::Deaths::told);
  for (std::uint64_t seed = 1; seed <= orders(500); ++seed) {
    const auto layout = drawn_layout(seed);
    Play play(seed, layout);
    play.world().set_deaths(deaths);
    play.begin_epoch(1);
    const auto before = static_cast<int>(play.draw(8000));
    for (int i = 0; i < before; ++i) play.step();
    play.kill(static_cast<int>(play.draw(static_cast<std::uint64_t>(layout.devices))));
    INFO("seed " << seed << ", after " << before << " steps");
    // A process whose edges were idle is told by a process that noticed.
    for (int i = 0; i < 4000; ++i) play.step();
    play.abort_all();
    REQUIRE(ends_by_itself(play));
    REQUIRE(play.wrong() == "");

    play.begin_epoch(2);
    REQUIRE(play.run_until([&] { return play.all_arrived(); }));
    REQUIRE(play.wrong() == "");
  }
}

TEST_CASE("without an order a process that waits for a dead one ends by itself", "[edges]") {
  for (std::uint64_t seed = 1; seed <= orders(500); ++seed) {
    Play play(seed, {.devices = 2, .edges = {{0, 1}, {1, 0}}, .parcels = 1000});
    play.begin_epoch(1);
    const auto before = static_cast<int>(play.draw(2000));
    for (int i = 0; i < before; ++i) play.step();
    play.kill(1);
    INFO("seed " << seed << ", after " << before << " steps");
    REQUIRE(ends_by_itself(play));
    REQUIRE(play.edge(0).sender_end.has_value());
    REQUIRE(play.wrong() == "");
  }
}

TEST_CASE("epochs may follow one another while words of the previous one are under way",
          "[edges]") {
  std::uint64_t late_words = 0;
  for (std::uint64_t seed = 1; seed <= orders(150); ++seed) {
    const auto layout = drawn_layout(seed);
    Play play(seed, layout);
    for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
      play.begin_epoch(epoch);
      const auto before = static_cast<int>(play.draw(4000));
      for (int i = 0; i < before; ++i) play.step();
      for (int i = 0; i < layout.devices; ++i)
        late_words += play.process_at(i).edges->counters().other_epoch;
    }
    play.begin_epoch(5);
    INFO("seed " << seed);
    REQUIRE(play.run_until([&] { return play.all_arrived(); }));
    REQUIRE(play.wrong() == "");
  }
  CHECK(late_words > orders(300));
}

TEST_CASE("the name of a link is valid for one link", "[edges]") {
  sim_device::SimWorld world(1);
  const auto device = world.add_device();
  const auto fabric = world.fabric(device);
  const auto id = fabric->name_link().value();
  auto link = fabric->begin(id, LinkSide::sends);
  REQUIRE(link.ok());
  CHECK_FALSE(fabric->begin(id, LinkSide::sends).ok());
  std::vector<std::unique_ptr<Link>> links;
  links.push_back(std::move(*link));
  fabric->end(std::move(links));
  CHECK_FALSE(fabric->begin(id, LinkSide::sends).ok());
}
