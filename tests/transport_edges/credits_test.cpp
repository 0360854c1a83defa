#include "catch.h"
#include "play.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

TEST_CASE("nothing is posted before the receiver has granted it", "[edges]") {
  for (std::uint64_t seed = 1; seed <= orders(200); ++seed) {
    Play play(seed, {.devices = 2, .edges = {{0, 1}}, .parcels = 100});
    play.lose(EdgeWordKind::grant);
    play.begin_epoch(1);
    for (int i = 0; i < 3000; ++i) play.step();
    INFO("seed " << seed);
    REQUIRE(play.edge(0).sent == 4);
    REQUIRE(play.world().most_under_way() == 1);  // Only the test exchange was under way.
    REQUIRE(play.world().idle(play.process_at(0).device));
  }
}

TEST_CASE("no more is posted than the receiver has places for", "[edges]") {
  Play play(1,
            {.devices = 2, .edges = {{0, 1}}, .parcels = 100, .bound = {100'000, 8}, .places = 3});
  play.begin_epoch(1);
  REQUIRE(play.run_until([&] { return play.edge(0).heard > 0; }));
  play.freeze(1);
  for (int i = 0; i < 5000; ++i) play.step();
  CHECK(play.world().most_under_way() <= 3);
  CHECK(play.wrong() == "");
}

TEST_CASE("the number of parcels under way is bounded, and more are an error at once", "[edges]") {
  Play play(1, {.devices = 2, .edges = {{0, 1}}, .parcels = 0, .bound = {100'000, 4}});
  play.begin_epoch(1);
  for (int i = 0; i < 4; ++i) CHECK(play.send(0).ok());
  const auto fifth = play.send(0);
  REQUIRE(!fifth.ok());
  CHECK(fifth.error().text.starts_with("more would be under way than the channel's bound: 4"));
  REQUIRE(play.run_until([&] { return play.edge(0).heard == 4; }));
  CHECK(play.run_until([&] { return play.send(0).ok(); }));
}

TEST_CASE("shapes that do not fit into one word are refused", "[edges]") {
  Play play(1, {.devices = 2, .edges = {{0, 1}}, .parcels = 0});
  play.begin_epoch(1);
  const std::vector<std::byte> head(most_head_bytes);
  const auto sent = play.edge(0).sender->send(head, {});
  REQUIRE(!sent.ok());
  CHECK(sent.error().text ==
        "a parcel's head and shapes take 65648 bytes; at most 65536 go ahead "
        "of its tensors");
  CHECK_FALSE(fits_an_edge(most_head_bytes, 0));
  CHECK(fits_an_edge(1000, 700));
  CHECK_FALSE(fits_an_edge(1000, 900));
}

TEST_CASE("a device is occupied by tests of its edges only once all edges are linked", "[edges]") {
  // Each of the three devices waits for the next one. If links were made while others are tested,
  // none would finish.
  for (std::uint64_t seed = 1; seed <= orders(200); ++seed) {
    Play play(seed, {.devices = 3, .edges = {{0, 1}, {1, 2}, {2, 0}, {1, 0}, {2, 1}, {0, 2}}});
    play.send_nothing();
    play.begin_epoch(1);
    INFO("seed " << seed);
    REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::ready); }));
    REQUIRE(play.wrong() == "");
  }
}

TEST_CASE("in steady state no memory is allocated", "[edges]") {
  Play play(1, {.devices = 2, .edges = {{0, 1}}});
  play.send_nothing();
  play.begin_epoch(1);
  auto& edge = play.edge(0);
  const auto sends_up_to = [&](std::uint64_t parcels) {
    return play.run_until(
        [&] {
          // Keeps few parcels under way. The device holds on to what it has not used yet, and no
          // link waits for that.
          if (play.left_out() < 4) {
            const auto tensor = edge.sender->lend({100}, DType::i32);
            (void)edge.sender->send({}, {&tensor, 1}).ok();
          }
          return edge.heard >= parcels;
        },
        1'000'000);
  };
  REQUIRE(sends_up_to(500));
  const auto before = play.process_at(0).pool->counters().allocations +
                      play.process_at(1).pool->counters().allocations;
  REQUIRE(sends_up_to(3000));
  CHECK(play.process_at(0).pool->counters().allocations +
            play.process_at(1).pool->counters().allocations ==
        before);
}
