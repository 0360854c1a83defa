// Runs in fp16 have one loss scale for all stages and replicas, and all of them skip the same
// steps.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr std::uint64_t fp16_seed = 3;

RoundShape fp16_shape(const std::string& schedule, int stages, int chunks, int replicas) {
  RoundShape shape;
  shape.schedule = schedule;
  shape.stages = stages;
  shape.chunks = chunks;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 4;
  return shape;
}

struct ToldStep {
  double loss_scale = 0;
  bool skipped = false;
  bool has_norm = false;

  friend bool operator==(const ToldStep&, const ToldStep&) = default;
};

/// Returns the last event of each step.
std::vector<ToldStep> steps_of(const Played& played) {
  std::vector<ToldStep> steps;
  for (const auto& event : played.events) {
    if (*event.find("type")->text() != "step") continue;
    const auto step = static_cast<std::size_t>(*event.find("step")->integer());
    steps.resize(std::max(steps.size(), step));
    REQUIRE(event.find("loss_scale"));
    steps[step - 1] = {event.find("loss_scale")->number(), *event.find("skipped")->boolean(),
                       event.find("grad_norm") != nullptr};
  }
  return steps;
}

std::int64_t count_skipped(const std::vector<ToldStep>& steps) {
  return std::ranges::count_if(steps, [](const ToldStep& step) { return step.skipped; });
}

/// Returns the events that the rule requires, given the steps that overflowed.
std::vector<ToldStep> by_the_rule(const models::LossScaling& scaling,
                                  const std::vector<ToldStep>& told) {
  std::vector<ToldStep> steps;
  auto scale = scaling.first();
  for (const auto& step : told) {
    steps.push_back({scale.factor(), step.skipped, !step.skipped});
    scale = step.skipped ? scaling.after_overflow(scale) : scaling.after_step(scale);
  }
  return steps;
}

LayerFault infinite_gradient(int unit, std::uint32_t step) {
  return {.unit = unit, .forward = {}, .backward = [step](const models::Pass& pass, Tensor& dx) {
            // Affects only the micro-batch that begins with sample 4.
            if (pass.key.step == step && pass.key.sample == 4)
              std::fill_n(dx.f32(), dx.count(), std::numeric_limits<float>::infinity());
          }};
}

}  // namespace

TEST_CASE("every synchronous schedule skips the same fp16 steps and gives the same bits",
          "[actors]") {
  for (const std::string model : {"mlp", "gpt2"}) {
    const auto one = Piece::of(model, fp16_shape("seq", 1, 1, 1)).in_fp16(12);
    const auto wanted = LittleRun(one).plainly();
    const auto first = steps_of(play(one, fp16_seed));
    REQUIRE(first.size() == 12);
    CHECK(count_skipped(first) >= 2);
    CHECK(count_skipped(first) <= 10);
    CHECK(first == by_the_rule(one.loss_scaling, first));
    for (const auto& shape :
         {fp16_shape("seq", 2, 1, 1), fp16_shape("gpipe", 2, 1, 1), fp16_shape("1f1b", 2, 1, 1),
          fp16_shape("1f1b", 2, 1, 2), fp16_shape("gpipe", 4, 1, 1), fp16_shape("zb-h1", 3, 1, 2),
          fp16_shape("interleaved", 4, 2, 1), fp16_shape("chimera", 2, 1, 1)}) {
      CAPTURE(model, shape.schedule, shape.stages, shape.replicas);
      const auto played = play(Piece::of(model, shape).in_fp16(12), fp16_seed);
      INFO(played.outcome.why);
      REQUIRE(played.outcome.how == Outcome::How::done);
      CHECK(played.weights == wanted);
      CHECK(steps_of(played) == first);
      CHECK(played.outcome.skipped_steps == count_skipped(first));
      CHECK(played.bytes_left == 0);
    }
  }
}

TEST_CASE("all stages and replicas skip a step that overflows in one stage of one replica",
          "[actors]") {
  const auto with_fault = [](const RoundShape& shape) {
    auto piece = Piece::of("mlp", shape);
    piece.loss_scaling = {.initial_power = 4, .growth_interval = 100};
    piece.steps = 4;
    piece.layer_fault = infinite_gradient(6, 2);
    return piece;
  };
  const auto wanted = LittleRun(with_fault(fp16_shape("seq", 1, 1, 1))).plainly();
  for (const auto& shape : {fp16_shape("1f1b", 4, 1, 1), fp16_shape("gpipe", 4, 1, 2)}) {
    const auto played = play(with_fault(shape), fp16_seed);
    CAPTURE(shape.schedule, played.outcome.why);
    CHECK(played.weights == wanted);
    CHECK(steps_of(played) ==
          std::vector<ToldStep>{
              {16, false, true}, {16, false, true}, {16, true, false}, {8, false, true}});
  }
}

TEST_CASE("loss scaling needs no additional message, whether steps are skipped or not",
          "[actors]") {
  auto piece = Piece::of("mlp", fp16_shape("1f1b", 2, 1, 2));
  const auto skipping = play(piece.in_fp16(12), fp16_seed);
  piece.steps = 12;
  const auto plain = play(piece, fp16_seed);
  REQUIRE(plain.outcome.how == Outcome::How::done);
  CHECK(count_skipped(steps_of(skipping)) > 0);
  CHECK(skipping.messages == plain.messages);
}

TEST_CASE("a stage failure changes neither the loss scale nor the weights", "[actors]") {
  auto piece = Piece::of("gpt2", fp16_shape("1f1b", 2, 1, 2)).in_fp16(10);
  piece.save_every = 2;
  const auto wanted = play(piece, fp16_seed);
  REQUIRE(count_skipped(steps_of(wanted)) > 0);
  for (const std::uint32_t step : {1u, 5u, 8u}) {
    bool has_failed = false;
    auto failing = piece;
    failing.layer_fault = {.unit = 5,
                           .forward =
                               [&](const models::Pass& pass, Tensor&) {
                                 if (pass.key.step == step && !std::exchange(has_failed, true))
                                   throw std::runtime_error("it fails once");
                               },
                           .backward = {}};
    const auto played = play(failing, fp16_seed);
    CAPTURE(step, played.outcome.why);
    CHECK(has_failed);
    CHECK(played.weights == wanted.weights);
    CHECK(steps_of(played) == steps_of(wanted));
  }
}

TEST_CASE("a killed run resumes with the loss scale that it saved", "[actors]") {
  auto piece = Piece::of("gpt2", fp16_shape("gpipe", 2, 1, 1)).in_fp16(10);
  piece.save_every = 3;
  const auto wanted = play(piece, fp16_seed);
  for (const auto parts : {4u, 2u}) {
    LittleRun run(piece);
    {
      Scene killed(run, fp16_seed);
      killed.begin();
      killed.play(wanted.messages / parts);
    }
    Scene scene(run, fp16_seed);
    scene.begin();
    const auto played = scene.finish();
    CAPTURE(parts, played.outcome.why);
    CHECK(played.weights == wanted.weights);
    CHECK(steps_of(played) == steps_of(wanted));
    CHECK(played.outcome.skipped_steps == wanted.outcome.skipped_steps);
  }
}

TEST_CASE("an overflow at a scale of 1 ends the run as in fp32", "[actors]") {
  auto piece = Piece::of("mlp", fp16_shape("1f1b", 2, 1, 1));
  piece.loss_scaling = {.initial_power = 1, .growth_interval = 100};
  piece.steps = 6;
  // Infinite at any scale.
  piece.layer_fault = {
      .unit = 6, .forward = {}, .backward = [](const models::Pass& pass, Tensor& dx) {
        if (pass.key.step >= 2)
          std::fill_n(dx.f32(), dx.count(), std::numeric_limits<float>::infinity());
      }};
  const auto played = play(piece, fp16_seed);
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(count_skipped(steps_of(played)) == 1);
  CAPTURE(played.outcome.why);
  CHECK(played.outcome.why.find(": step 4: the gradient of ") != std::string::npos);
  CHECK(played.outcome.why.ends_with(" is not finite, at a loss scale of 1"));
}

TEST_CASE("an fp16 loss that is not a number ends the run at once", "[actors]") {
  auto piece = Piece::of("mlp", fp16_shape("1f1b", 2, 1, 1)).in_fp16(10);
  piece.layer_fault = {.unit = 7,
                       .forward =
                           [](const models::Pass& pass, Tensor& y) {
                             if (pass.key.step == 3)
                               y.f32()[0] = std::numeric_limits<float>::quiet_NaN();
                           },
                       .backward = {}};
  const auto played = play(piece, fp16_seed);
  CHECK(played.outcome.how == Outcome::How::failed);
  CAPTURE(played.outcome.why);
  CHECK(played.outcome.why.find("step 4, micro-batch ") != std::string::npos);
  CHECK(played.outcome.why.ends_with("the loss is not a finite number"));
}

TEST_CASE("a checkpoint in fp16 contains the state of the loss scale", "[actors]") {
  auto piece = Piece::of("mlp", fp16_shape("1f1b", 2, 1, 1)).in_fp16(10);
  LittleRun run(piece);
  Scene scene(run, fp16_seed);
  scene.begin();
  const auto played = scene.finish();
  MemoryPool memory;
  auto newest = newest_checkpoint(run.files(), memory);
  REQUIRE(newest);
  auto scale = piece.loss_scaling.first();
  for (const auto& step : steps_of(played))
    scale = step.skipped ? piece.loss_scaling.after_overflow(scale)
                         : piece.loss_scaling.after_step(scale);
  CHECK(newest->loss_scale == scale);
}
