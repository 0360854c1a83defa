// Runs that end before their last step because their evaluations do not improve.

#include <algorithm>

#include "actors/decide/improvement.h"
#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// A run whose evaluations improve too little from the first one on.
Piece hopeless(const std::string& schedule) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = 2;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of("mlp", shape);
  piece.steps = 100;
  piece.eval_every = 2;
  piece.save_every = 3;
  piece.early_stop = {.after = 3, .least = 1000};
  return piece;
}

void check_stopped_at_8(const Played& played) {
  CAPTURE(played.outcome.why);
  REQUIRE(played.ended);
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.outcome.step == 8);
  CHECK(played.outcome.why.starts_with(
      "stopped early: no improvement of the validation loss by 1000 in 3 evaluations; "));
  CHECK(played.audit.steps == 8);
  CHECK(played.audit.flaw.empty());
}

int count_of(const std::vector<Value>& events, const std::string& type) {
  return static_cast<int>(std::ranges::count_if(
      events, [&](const Value& event) { return *event.find("type")->text() == type; }));
}

}  // namespace

TEST_CASE("a run is done when its evaluations have stopped to improve", "[actors]") {
  auto piece = hopeless("1f1b");
  const auto stopped = play(piece, 1);
  check_stopped_at_8(stopped);
  CHECK(count_of(stopped.events, "run.stopped_early") == 1);
  // Its weights are those of a run with as many steps.
  piece.early_stop = {};
  piece.steps = 8;
  CHECK(play(piece, 1).weights == stopped.weights);
  check_stopped_at_8(play(hopeless("gpipe"), 1));
}

TEST_CASE("kills do not change the step after which a run ends early", "[actors]") {
  const auto undisturbed = play(hopeless("1f1b"), 1);
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto played = play_and_kill(hopeless("1f1b"), seed, undisturbed.messages,
                                      {"stage actor", "optimizer actor", "loader"});
    CAPTURE(seed);
    check_stopped_at_8(played);
    CHECK(played.weights == undisturbed.weights);
  }
}

TEST_CASE("a later process continues to count the evaluations of an earlier one", "[actors]") {
  const auto undisturbed = play(hopeless("1f1b"), 1);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    LittleRun run(hopeless("1f1b"));
    {
      Scene killed(run, seed);
      killed.begin();
      killed.play(undisturbed.messages * seed / 30);
    }
    Scene scene(run, seed);
    scene.begin();
    const auto played = scene.finish();
    check_stopped_at_8(played);
    CHECK(played.weights == undisturbed.weights);
  }
}

TEST_CASE("states with the lowest validation losses are saved at once, with their losses",
          "[actors]") {
  auto piece = hopeless("1f1b");
  piece.early_stop = {};
  piece.steps = 7;
  piece.save_every = 1000;
  piece.keep_best = 1;
  piece.optimizer.rate.lr = 0.01;
  LittleRun run(piece);
  Scene scene(run, 1);
  scene.begin();
  const auto played = scene.finish();
  REQUIRE(played.outcome.how == Outcome::How::done);
  std::vector<storage::EvaluatedStep> evaluated;
  std::vector<std::int64_t> wanted;
  for (const auto& event : played.events)
    if (*event.find("type")->text() == "eval") {
      evaluated.push_back({*event.find("step")->integer(), event.find("loss")->number()});
      if (newest_is_among_best(evaluated, 1)) wanted.push_back(evaluated.back().step);
    }
  REQUIRE(evaluated.size() == 4);
  if (wanted.back() != 7) wanted.push_back(7);
  std::vector<std::int64_t> saved;
  const auto listed = storage::list_checkpoints(run.files(), "checkpoints");
  REQUIRE(listed);
  for (const auto& checkpoint : *listed) {
    saved.insert(saved.begin(), checkpoint.step);
    const auto loss = storage::validation_loss_in(checkpoint.manifest->state);
    REQUIRE(loss);
    CHECK(std::ranges::count(evaluated, storage::EvaluatedStep{checkpoint.step, *loss}) == 1);
  }
  CHECK(saved == wanted);
}
