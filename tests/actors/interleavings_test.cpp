#include <chrono>
#include <string>

#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

struct Case {
  const char* schedule;
  int stages = 1, chunks = 1, replicas = 1;
  std::vector<bool> recompute = {};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"seq", 2},
      {"gpipe", 2},
      {"gpipe", 3, 1, 2},
      {"gpipe", 4, 1, 1, {true, true, true, true}},
      {"1f1b", 1},
      {"1f1b", 2, 1, 2},
      {"1f1b", 4},
      {"1f1b", 3, 1, 1, {true, false, true}},
      {"1f1b-eager", 3},
      {"interleaved", 4, 2},
      {"interleaved", 8, 4},
      {"bfs", 4, 2},
      {"zb-h1", 3},
      {"zb-h1", 2, 1, 2, {false, true}},
      {"zb-h2", 3},
      {"zb-v", 4, 2},
      {"v-half", 4, 2},
      {"dualpipev", 4, 2},
      {"chimera", 2},
      {"chimera", 2, 1, 2},
      {"hanayo", 4, 2},
  };
  return all;
}

Piece piece_of(const Case& of) {
  RoundShape shape;
  shape.schedule = of.schedule;
  shape.stages = of.stages;
  shape.chunks = of.chunks;
  shape.replicas = of.replicas;
  shape.recompute = of.recompute;
  shape.micro_batches = shape.groups = 8;
  auto piece = Piece::of("mlp", shape);
  piece.steps = 2;
  return piece;
}

Digest wanted() {
  static const Digest digest = LittleRun(piece_of({"1f1b"})).plainly();
  return digest;
}

/// Plays all cases with `seeds` seeds each. Returns how long that took.
std::string check_interleavings(std::uint64_t seeds) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t played = 0, messages = 0;
  for (const auto& of : cases())
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const auto one = play(piece_of(of), seed);
      CAPTURE(of.schedule, of.stages, of.replicas, seed, one.outcome.why);
      REQUIRE(one.outcome.how == Outcome::How::done);
      REQUIRE(one.weights == wanted());
      REQUIRE(one.bytes_left == 0);
      ++played;
      messages += one.messages;
    }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return std::to_string(played) + " interleavings with " + std::to_string(messages) +
         " messages in " + std::to_string(time.count()) +
         " s: " + std::to_string(static_cast<double>(played) / time.count()) + " a second";
}

}  // namespace

TEST_CASE("no interleaving of messages changes a bit", "[actors]") { check_interleavings(15); }
TEST_CASE("no interleaving of messages changes a bit: many seeds", "[.all]") {
  WARN(check_interleavings(200));
}
