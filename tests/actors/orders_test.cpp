#include <string>
#include <vector>

#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

Piece four_steps() {
  RoundShape shape;
  shape.stages = 2;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of("mlp", shape);
  piece.steps = 4;
  piece.save_every = 2;
  return piece;
}

Digest weights_after_four_steps() {
  static const Digest digest = LittleRun(four_steps()).plainly();
  return digest;
}

std::uint64_t messages_of_four_steps() {
  static const auto played = play(four_steps(), 1);
  return played.messages;
}

/// Checks that a second run resumes where the first one was ended, with the bits of an
/// uninterrupted run.
template <class Order>
void check_ended_by(Order order) {
  int stopped = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    LittleRun run(four_steps());
    std::int64_t reached = 0;
    {
      Scene scene(run, seed);
      scene.begin();
      scene.play(scene.world().random()() % messages_of_four_steps());
      if (scene.ended()) continue;
      caf_shim::post(scene.supervisor(), order);
      const auto played = scene.finish();
      CAPTURE(seed, played.outcome.why);
      REQUIRE(played.ended);
      REQUIRE(played.bytes_left == 0);
      if (played.outcome.how == Outcome::How::done) continue;
      REQUIRE(played.outcome.how == Outcome::How::stopped);
      reached = played.outcome.step;
      ++stopped;
    }
    Scene second(run, seed + 1000);
    second.begin();
    const auto played = second.finish();
    CAPTURE(seed, reached, played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    REQUIRE(played.weights == weights_after_four_steps());
  }
  CHECK(stopped > 30);
}

}  // namespace

TEST_CASE("a run that was drained resumes to the same bits", "[actors]") {
  check_ended_by(Drain{});
}

TEST_CASE("a run that was stopped resumes to the same bits", "[actors]") {
  check_ended_by(StopNow{});
}

TEST_CASE("a drained run has saved all its steps", "[actors]") {
  LittleRun run(four_steps());
  Scene scene(run, 3);
  scene.begin();
  while (run.events().empty()) scene.step();
  caf_shim::post(scene.supervisor(), Drain{});
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::stopped);
  MemoryPool memory;
  const auto newest = newest_of(*scene.spec().checkpoints, memory);
  REQUIRE(newest);
  CHECK(newest->step == played.outcome.step);
  CHECK(played.outcome.step >= 1);
}

TEST_CASE("a run resumes from a checkpoint with the same bits", "[actors]") {
  for (const std::int64_t first : {1, 2, 3}) {
    LittleRun run(four_steps());
    {
      Scene scene(run, 5);
      scene.spec().steps = first;
      scene.begin();
      REQUIRE(scene.finish().outcome.how == Outcome::How::done);
    }
    Scene scene(run, 6);
    scene.begin();
    CHECK(scene.finish().weights == weights_after_four_steps());
  }
}

TEST_CASE("two replicas report the same evaluation losses as one", "[actors]") {
  auto piece = four_steps();
  piece.eval_every = 2;
  const auto one = play(piece, 1);
  piece.shape.replicas = 2;
  const auto two = play(piece, 2);
  REQUIRE(two.outcome.how == Outcome::How::done);
  const auto evaluations = [](const Played& played) {
    std::vector<double> losses;
    for (const auto& event : played.events)
      if (*event.find("type")->text() == "eval") losses.push_back(event.find("loss")->number());
    return losses;
  };
  CHECK(evaluations(one).size() == 2);
  CHECK(evaluations(one) == evaluations(two));
}

TEST_CASE("a paused run waits until it is resumed", "[actors]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    LittleRun run(four_steps());
    Scene scene(run, seed);
    scene.begin();
    scene.play(scene.world().random()() % messages_of_four_steps());
    if (scene.ended()) continue;
    caf_shim::post(scene.supervisor(), Pause{});
    scene.world().run_until([&] { return scene.ended(); }, std::chrono::minutes(30));
    if (!scene.ended()) caf_shim::post(scene.supervisor(), Resume{});
    const auto played = scene.finish();
    CAPTURE(seed, played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    REQUIRE(played.weights == weights_after_four_steps());
    REQUIRE(played.told("stage.stalled").empty());
  }
}
