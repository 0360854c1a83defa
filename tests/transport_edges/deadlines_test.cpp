#include "catch.h"
#include "play.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

namespace {

constexpr int long_enough = 20'000;

const Layout one_edge{.devices = 2, .edges = {{0, 1}}, .parcels = 20};

/// Returns the reason that an end gives after the patience has passed.
std::string reason_after(Play& play, const std::optional<ChannelEnd>& end) {
  play.pass(patience);
  (void)play.run_until([&] { return end.has_value(); }, long_enough);
  return end ? end->text : "nothing";
}

}  // namespace

TEST_CASE("a receiver waits only for a limited time for the name of its link", "[edges]") {
  Play play(1, one_edge);
  play.lose(EdgeWordKind::name);
  play.begin_epoch(1);
  for (int i = 0; i < 100; ++i) play.step();
  CHECK(reason_after(play, play.edge(0).receiver_end) ==
        "edge 0: nobody has named its link within 1000 ms");
  CHECK(reason_after(play, play.edge(0).sender_end) ==
        "edge 0: its link was not made within 1000 ms");
}

TEST_CASE("a sender waits only for a limited time for a grant", "[edges]") {
  Play play(1, one_edge);
  play.lose(EdgeWordKind::grant);
  play.begin_epoch(1);
  for (int i = 0; i < 2000; ++i) play.step();
  CHECK(reason_after(play, play.edge(0).sender_end) ==
        "edge 0: the receiver granted nothing within 1000 ms");
}

TEST_CASE("a posted operation waits only for a limited time for the other end", "[edges]") {
  Play play(3, one_edge);
  play.lose(EdgeWordKind::parcel);
  play.send_nothing();
  play.begin_epoch(1);
  auto& sender = *play.edge(0).sender;
  const auto large = sender.lend({1000}, DType::f32);
  REQUIRE(sender.send({}, {&large, 1}).ok());
  for (int i = 0; i < 4000; ++i) play.step();
  CHECK(play.world().occupied(play.process_at(0).device));
  CHECK(reason_after(play, play.edge(0).sender_end) ==
        "edge 0: a parcel's send was not done within 1000 ms");
}

TEST_CASE("a parcel that has left its device is waited for only for a limited time", "[edges]") {
  // As many places as may be under way, so no parcel waits for a grant.
  for (std::uint64_t seed = 1; seed <= orders(200); ++seed) {
    Play play(seed, {.devices = 2, .edges = {{0, 1}}, .parcels = 20, .bound = {100'000, 2}});
    play.begin_epoch(1);
    REQUIRE(play.run_until([&] { return play.edge(0).heard == 4; }));
    play.freeze(1);
    for (int i = 0; i < 2000; ++i) play.step();
    INFO("seed " << seed);
    REQUIRE(reason_after(play, play.edge(0).sender_end) != "nothing");
  }
}

TEST_CASE("after a failure nothing is posted, and the end waits for an order", "[edges]") {
  Play play(3, {.devices = 3, .edges = {{0, 1}, {0, 2}}, .parcels = 1'000'000});
  play.begin_epoch(1);
  REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::ready); }));
  play.freeze(1);
  for (int i = 0; i < 2000; ++i) play.step();
  (void)reason_after(play, play.edge(0).sender_end);
  const auto& edges = *play.process_at(0).edges;
  CHECK(edges.phase() == Edges::Phase::failed);
  for (int i = 0; i < 2000; ++i) play.step();
  const auto heard = play.edge(1).heard;
  for (int i = 0; i < 2000; ++i) play.step();
  CHECK(play.edge(1).heard == heard);
  CHECK(edges.phase() == Edges::Phase::failed);
  play.pass(patience);
  CHECK(play.run_until([&] { return edges.phase() == Edges::Phase::over; }, long_enough));
  CHECK(play.edge(1).sender_end->text == "an edge has failed, and nobody has given an order");
}

TEST_CASE("a device that does not release memory is reported in time", "[edges]") {
  Play play(5, {.devices = 2, .edges = {{0, 1}}, .parcels = 20, .handed_over = HandedOver::at_end});
  play.begin_epoch(1);
  REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::ready); }));
  play.block(1);
  for (int i = 0; i < 2000; ++i) play.step();
  play.abort_all();
  const auto& edges = *play.process_at(1).edges;
  CHECK_FALSE(play.run_until([&] { return edges.phase() == Edges::Phase::over; }, 5000));
  CHECK(edges.phase() == Edges::Phase::ending);
  CHECK(play.process_at(1).pool->counters().bytes_in_use > 0);  // The device may still write to it.
  play.pass(patience);
  CHECK(play.run_until([&] { return edges.phase() == Edges::Phase::stuck; }, long_enough));
}
