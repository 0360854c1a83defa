#include "catch.h"
#include "play.h"

using namespace troupe;
using namespace troupe::transport;
using namespace edges_play;

namespace {

/// Aborts an epoch in one process after another, at a random step. Waits until all have ended.
void abort_somewhere(Play& play) {
  const auto before = static_cast<int>(play.draw(3000));
  for (int i = 0; i < before; ++i) play.step();
  play.abort_all();
  const bool over = play.run_until([&] { return play.all_are(Edges::Phase::over); });
  REQUIRE(over);
}

}  // namespace

TEST_CASE("an abort ends all edges, and no garbage is applied", "[edges]") {
  int with_work_left_out = 0;
  for (std::uint64_t seed = 1; seed <= orders(5000); ++seed) {
    auto layout = drawn_layout(seed);
    layout.parcels = 1000;
    Play play(seed, layout);
    play.begin_epoch(1);
    abort_somewhere(play);
    const bool given_back = play.run_until([&] { return play.all_given_back(); });
    with_work_left_out += play.left_out() > 0;
    INFO("seed " << seed);
    REQUIRE(given_back);
    REQUIRE(play.wrong() == "");
  }
  CHECK(with_work_left_out > static_cast<int>(orders(50)));
}

TEST_CASE("work after a receive that ignores the poison word applies garbage", "[edges]") {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= orders(1000); ++seed) {
    auto layout = drawn_layout(seed);
    layout.handed_over = HandedOver::at_issue;
    layout.steps = Steps::do_not_look;
    layout.parcels = 1000;
    Play play(seed, layout);
    play.begin_epoch(1);
    abort_somewhere(play);
    (void)play.run_until([&] { return play.all_given_back(); });
    wrong += play.wrong().ends_with("wrong numbers");
  }
  CHECK(wrong > static_cast<int>(orders(50)));
}

TEST_CASE("an abort at one end ends its edges at once, and the other end's edges later",
          "[edges]") {
  for (std::uint64_t seed = 1; seed <= orders(500); ++seed) {
    Play play(seed, {.devices = 2, .edges = {{0, 1}, {1, 0}}, .parcels = 50});
    play.begin_epoch(1);
    const auto before = static_cast<int>(play.draw(1500));
    for (int i = 0; i < before; ++i) play.step();
    play.abort(0);
    const auto over = [&](int process) {
      return play.process_at(process).edges->phase() == Edges::Phase::over;
    };
    REQUIRE(play.run_until([&] { return over(0); }));
    CHECK(play.edge(0).sender_end->text == "the test says so");
    for (int i = 0; i < 4; ++i) {
      play.pass(patience);
      for (int step = 0; step < 500; ++step) play.step();
    }
    INFO("seed " << seed);
    REQUIRE(over(1));
    REQUIRE(play.wrong() == "");
  }
}

TEST_CASE("after an abort nothing is sent, and every end gives the reason", "[edges]") {
  Play play(1, {.devices = 2, .edges = {{0, 1}}, .parcels = 100});
  play.begin_epoch(1);
  REQUIRE(play.run_until([&] { return play.edge(0).heard >= 3; }));
  play.abort_all();
  REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::over); }));
  const auto sent = play.send(0);
  REQUIRE(!sent.ok());
  CHECK(sent.error().text == "the test says so");
  CHECK(play.edge(0).sender_end->why == ChannelEnd::Why::lost);
  CHECK(play.edge(0).receiver_end->text == "the test says so");
  CHECK(play.edge(0).sender->close(std::chrono::milliseconds(0)).error().text ==
        "the test says so");
}

TEST_CASE("edges that were closed end without an error", "[edges]") {
  for (std::uint64_t seed = 1; seed <= orders(150); ++seed) {
    const auto layout = drawn_layout(seed);
    Play play(seed, layout);
    play.begin_epoch(1);
    REQUIRE(play.run_until([&] { return play.all_arrived(); }));
    for (std::size_t i = 0; i < layout.edges.size(); ++i)
      REQUIRE(play.run_until(
          [&] { return play.edge(i).sender->close(std::chrono::milliseconds(0)).ok(); }));
    for (std::size_t i = 0; i < layout.edges.size(); ++i)
      REQUIRE(play.run_until([&] { return play.edge(i).receiver_end.has_value(); }));
    play.abort_all();
    REQUIRE(play.run_until([&] { return play.all_are(Edges::Phase::over); }));
    for (std::size_t i = 0; i < layout.edges.size(); ++i) {
      CHECK(play.edge(i).receiver_end->why == ChannelEnd::Why::closed);
      CHECK_FALSE(play.edge(i).sender_end.has_value());
    }
    REQUIRE(play.wrong() == "");
  }
}
