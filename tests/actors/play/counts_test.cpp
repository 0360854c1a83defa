// Every plan gives the bits of a plain loop even if some targets do not count, and every target
// that counts weighs the same.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "tests/actors/little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

/// Some of a sample's five targets, from none to all.
std::int64_t some_left_out(std::int64_t sample) { return sample * 5 % 6; }
/// The only target of every third sample.
std::int64_t third_left_out(std::int64_t sample) { return sample % 3 == 0 ? 1 : 0; }

Piece counting_piece(const std::string& model, const RoundShape& shape) {
  auto piece = Piece::of(model, shape);
  piece.left_out = model == "mlp" ? third_left_out : some_left_out;
  return piece;
}

RoundShape counting_shape(const std::string& schedule, int stages, int replicas, int chunks = 1) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 8;
  return shape;
}

/// Plays a run that ends well.
Played well_played(const Piece& piece, std::uint64_t seed) {
  auto played = play(piece, seed);
  INFO(played.outcome.why);
  REQUIRE(played.ended);
  REQUIRE(played.outcome.how == Outcome::How::done);
  return played;
}

/// Returns the last event of each step.
std::vector<Value> events_of_steps(const Played& played) {
  std::vector<Value> steps;
  for (const auto& event : played.events) {
    if (*event.find("type")->text() != "step") continue;
    const auto step = static_cast<std::size_t>(*event.find("step")->integer());
    steps.resize(std::max(steps.size(), step));
    steps[step - 1] = event;
  }
  return steps;
}

}  // namespace

TEST_CASE("where targets do not count, every plan gives the bits of a plain loop", "[actors]") {
  for (const std::string model : {"mlp", "gpt2", "llama"}) {
    const auto one = counting_shape("seq", 1, 1);
    const auto wanted = LittleRun(counting_piece(model, one)).plainly();
    CHECK(LittleRun(Piece::of(model, one)).plainly() != wanted);
    std::uint64_t seed = 0;
    for (const auto& shape : {one, counting_shape("seq", 1, 2), counting_shape("gpipe", 3, 1),
                              counting_shape("1f1b", 3, 1), counting_shape("1f1b", 2, 2),
                              counting_shape("1f1b", 2, 4), counting_shape("interleaved", 4, 1, 2),
                              counting_shape("zb-h1", 3, 2), counting_shape("dualpipe", 4, 1)}) {
      CAPTURE(model, shape.schedule, shape.stages, shape.replicas);
      if (Rounds::make(shape))
        CHECK(well_played(counting_piece(model, shape), ++seed).weights == wanted);
    }
    CHECK(seed > 6);
  }
}

TEST_CASE("where numbers are missing as targets, every plan gives the bits of a plain loop",
          "[actors]") {
  for (const std::string model : {"segmenter", "gauge"}) {
    const auto piece_of = [&](const RoundShape& shape) {
      auto piece = Piece::of(model, shape);
      piece.left_out = [](std::int64_t sample) { return sample % 4; };
      return piece;
    };
    const auto one = counting_shape("seq", 1, 1);
    const auto wanted = LittleRun(piece_of(one)).plainly();
    CHECK(LittleRun(Piece::of(model, one)).plainly() != wanted);
    std::uint64_t seed = 0;
    for (const auto& shape : {one, counting_shape("seq", 1, 2), counting_shape("1f1b", 3, 1),
                              counting_shape("1f1b", 2, 4), counting_shape("interleaved", 4, 1, 2),
                              counting_shape("zb-h1", 3, 2)}) {
      CAPTURE(model, shape.schedule, shape.stages, shape.replicas);
      if (!Rounds::make(shape)) continue;
      const auto played = well_played(piece_of(shape), ++seed);
      CHECK(played.weights == wanted);
      const auto steps = events_of_steps(played);
      REQUIRE(steps.size() == 3);
      for (const auto& step : steps) CHECK(*step.find("counted")->integer() > 0);
    }
    CHECK(seed > 4);
  }
}

TEST_CASE("the loss of a step is the mean over its targets that count", "[actors]") {
  auto piece = counting_piece("gpt2", counting_shape("1f1b", 3, 2));
  piece.eval_every = 1;
  LittleRun run(piece);
  const auto first = well_played(piece, 1);
  const auto steps = events_of_steps(first);
  REQUIRE(steps.size() == 3);
  piece.shape = counting_shape("seq", 1, 1);
  const auto other = well_played(piece, 2);
  const auto plain = events_of_steps(other);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::int64_t counted = 0;
    for (const auto sample : run.samples_of(static_cast<std::int64_t>(i)))
      counted += 5 - some_left_out(sample);
    CHECK(*steps[i].find("counted")->integer() == counted);
    CHECK_FALSE(*steps[i].find("skipped")->boolean());
    CHECK(steps[i].find("loss")->number() == plain[i].find("loss")->number());
    CHECK(steps[i].find("grad_norm")->number() == plain[i].find("grad_norm")->number());
  }
}

TEST_CASE("all stages and replicas skip a step in which no target counts", "[actors]") {
  auto piece = counting_piece("gpt2", counting_shape("seq", 1, 1));
  piece.steps = 4;
  piece.save_every = 1;
  const auto samples = LittleRun(piece).samples_of(1);
  const std::set<std::int64_t> empty(samples.begin(), samples.end());
  piece.left_out = [empty](std::int64_t sample) -> std::int64_t {
    return empty.contains(sample) ? 5 : some_left_out(sample) % 5;
  };
  const auto wanted = LittleRun(piece).plainly();
  for (const auto& shape :
       {counting_shape("seq", 1, 1), counting_shape("1f1b", 3, 1), counting_shape("1f1b", 2, 2)}) {
    piece.shape = shape;
    CAPTURE(shape.schedule, shape.stages, shape.replicas);
    const auto whole = well_played(piece, 3);
    CHECK(whole.weights == wanted);
    CHECK(whole.outcome.skipped_steps == 1);
    const auto steps = events_of_steps(whole);
    REQUIRE(steps.size() == 4);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK(*steps[i].find("skipped")->boolean() == (i == 1));
      CHECK((*steps[i].find("counted")->integer() == 0) == (i == 1));
      CHECK((steps[i].find("grad_norm") == nullptr) == (i == 1));
    }

    // A run that is killed later still knows of the skipped step.
    LittleRun run(piece);
    {
      Scene killed(run, 3);
      killed.begin();
      killed.play(whole.messages * 3 / 4);
    }
    Scene scene(run, 3);
    scene.begin();
    const auto resumed = scene.finish();
    INFO(resumed.outcome.why);
    CHECK(resumed.weights == wanted);
    CHECK(resumed.outcome.skipped_steps == 1);
  }
}

TEST_CASE("each micro-batch of an asynchronous run weighs by its own count", "[actors]") {
  auto shape = counting_shape("pipedream", 3, 1);
  shape.micro_batches = shape.groups = 1;
  shape.flush_steps = 3;
  auto piece = counting_piece("gpt2", shape);
  piece.steps = 6;
  const auto weights = well_played(piece, 1).weights;
  CHECK(well_played(piece, 2).weights == weights);
  piece.left_out = nullptr;
  CHECK(well_played(piece, 1).weights != weights);
}

TEST_CASE("an evaluation without targets that count ends the run with that reason", "[actors]") {
  auto piece = counting_piece("mlp", counting_shape("1f1b", 2, 1));
  piece.left_out = [](std::int64_t) { return std::int64_t{1}; };
  piece.eval_every = 1;
  const auto ended = play(piece, 1);
  CHECK(ended.outcome.how == Outcome::How::failed);
  CHECK(ended.outcome.why.find("none of its targets counts") != std::string::npos);
}

TEST_CASE("an evaluation whose targets are all NaN ends the run with that reason", "[actors]") {
  auto piece = Piece::of("gauge", counting_shape("1f1b", 2, 1));
  piece.left_out = [](std::int64_t) { return std::int64_t{3}; };
  piece.eval_every = 1;
  const auto ended = play(piece, 1);
  CHECK(ended.outcome.how == Outcome::How::failed);
  CHECK(ended.outcome.why.find("data.validate must have targets that are not NaN") !=
        std::string::npos);
}
