#include "catch.h"
#include "play.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

TEST_CASE("parcels go from device to device in order and unchanged", "[edges]") {
  for (std::uint64_t seed = 1; seed <= orders(2000); ++seed) {
    Play play(seed, drawn_layout(seed));
    play.begin_epoch(1);
    INFO("seed " << seed << ": " << play.wrong());
    REQUIRE(play.run_until([&] { return play.all_arrived(); }));
    REQUIRE(play.wrong() == "");
  }
}

TEST_CASE("parcels and sums do not wait for pending work of the devices", "[edges]") {
  for (std::uint64_t seed = 1; seed <= orders(500); ++seed) {
    const auto layout = drawn_layout(seed);
    Play play(seed, layout);
    play.hold_up_all();
    play.begin_epoch(1);
    INFO("seed " << seed << ": " << play.wrong());
    REQUIRE(play.run_until([&] { return play.all_heard(); }));
    CHECK(play.left_out() == layout.parcels * layout.edges.size());
    play.let_all_go_on();
    REQUIRE(play.run_until([&] { return play.all_arrived(); }));
    REQUIRE(play.wrong() == "");
  }
}
