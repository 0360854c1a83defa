// Runs with a planted spike of the loss, whose samples they leave out.

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "catch.h"
#include "tests/actors/little_run.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

constexpr std::int64_t spiking_step = 7;  // Counted from 1.

Piece calm_run() {
  RoundShape shape;
  shape.stages = 2;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of("mlp", shape);
  piece.steps = 12;
  piece.save_every = 5;
  return piece;
}

/// Multiplies the values between two layers in one micro-batch of these steps.
Piece spiking_run(float factor, std::vector<std::int64_t> steps = {spiking_step}) {
  auto piece = calm_run();
  piece.layer_fault = {.unit = 6,
                       .forward =
                           [factor, steps](const models::Pass& pass, Tensor& y) {
                             const auto step = std::int64_t{pass.key.step} + 1;
                             if (std::ranges::count(steps, step) == 0 || pass.key.sample >= 2)
                               return;
                             for (std::int64_t i = 0; i < y.count(); ++i) y.f32()[i] *= factor;
                           },
                       .backward = {}};
  return piece;
}

/// Multiplies the gradient between two layers in one micro-batch of that step. No loss shows it.
Piece steep_run(float factor) {
  auto piece = calm_run();
  piece.layer_fault = {
      .unit = 6, .forward = {}, .backward = [factor](const models::Pass& pass, Tensor& dx) {
        if (pass.key.step + 1 != spiking_step || pass.key.sample >= 2) return;
        for (std::int64_t i = 0; i < dx.count(); ++i) dx.f32()[i] *= factor;
      }};
  return piece;
}

constexpr float enormous = 1e4F;
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// The leading process of a run that leaves out spikes, from one life to the next.
struct Leading {
  SpikeRule rule{.action = SpikeRule::Action::skip, .factor = 5, .window = 4, .most = 1};
  std::vector<std::int64_t> left_out;

  void lead(Scene& scene) {
    auto& spec = scene.spec();
    spec.spikes = rule;
    spec.left_out = left_out;
    spec.leave_out = [this, &scene](std::int64_t step) -> Result<RunSpecPtr> {
      left_out.push_back(step);
      std::ranges::sort(left_out);
      auto changed = std::make_shared<RunSpec>(scene.spec());
      changed->left_out = left_out;
      return RunSpecPtr(std::move(changed));
    };
  }
};

Played lead_to_end(const Piece& piece, Leading& leading, std::uint64_t seed = 1) {
  LittleRun run(piece);
  Scene scene(run, seed);
  leading.lead(scene);
  scene.begin();
  return scene.finish();
}

std::vector<Value> spikes_of(const Played& played) {
  std::vector<Value> spikes;
  std::ranges::copy_if(played.events, std::back_inserter(spikes), [](const Value& event) {
    return *event.find("type")->text() == "run.spike";
  });
  return spikes;
}

/// Returns the weights of a run that leaves out these steps from its start.
Digest weights_without(const Piece& piece, std::vector<std::int64_t> steps) {
  Leading planned{.left_out = std::move(steps)};
  const auto played = lead_to_end(piece, planned);
  REQUIRE(played.outcome.how == Outcome::How::done);
  CHECK(spikes_of(played).empty());
  return played.weights;
}

}  // namespace

TEST_CASE("a run leaves out the samples of a spike, and has the bits of a run that planned that",
          "[actors]") {
  for (const float factor : {enormous, no_number}) {
    CAPTURE(factor);
    const auto piece = spiking_run(factor);
    const auto wanted = weights_without(piece, {spiking_step});
    Leading leading;
    const auto played = lead_to_end(piece, leading);
    CAPTURE(played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    CHECK(played.outcome.step == 12);
    CHECK(played.outcome.skipped_steps == 1);
    CHECK(leading.left_out == std::vector<std::int64_t>{spiking_step});
    CHECK(played.weights == wanted);
    CHECK(played.weights != LittleRun(calm_run()).plainly());
    CHECK(played.audit.flaw.empty());
    CHECK(played.audit.skipped == 1);
    CHECK(played.audit.steps == 12);
    CHECK(played.audit.taken_back == 1);  // Step 6: the newest checkpoint is of step 5.
    const auto spikes = spikes_of(played);
    REQUIRE(spikes.size() == 1);
    CHECK(*spikes[0].find("step")->integer() == spiking_step);
    CHECK(*spikes[0].find("first")->integer() == 6 * 8);
    CHECK(*spikes[0].find("samples")->integer() == 8);
  }
}

TEST_CASE("a run leaves out the samples of a spike of its gradient norm", "[actors]") {
  const auto piece = steep_run(enormous);
  const auto wanted = weights_without(piece, {spiking_step});
  Leading leading;
  // Without a factor for norms nothing happens.
  CHECK(lead_to_end(piece, leading).weights != wanted);
  CHECK(leading.left_out.empty());
  leading.rule.norm_factor = 20;
  std::uint64_t messages = 0;
  {
    Leading first = leading;
    const auto played = lead_to_end(piece, first);
    CAPTURE(played.outcome.why);
    REQUIRE(played.outcome.how == Outcome::How::done);
    CHECK(first.left_out == std::vector<std::int64_t>{spiking_step});
    CHECK(played.weights == wanted);
    CHECK(played.audit.flaw.empty());
    const auto spikes = spikes_of(played);
    REQUIRE(spikes.size() == 1);
    CHECK(spikes[0].find("why")->text()->starts_with("the gradient norm is "));
    messages = played.messages;
  }
  // The ledger knows the norms of the steps before a process was killed.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Leading killed = leading;
    LittleRun run(piece);
    {
      Scene scene(run, seed);
      killed.lead(scene);
      scene.begin();
      scene.play(messages * seed / 21);
    }
    Scene scene(run, seed);
    killed.lead(scene);
    scene.begin();
    const auto played = scene.finish();
    REQUIRE(played.outcome.how == Outcome::How::done);
    CHECK(killed.left_out == std::vector<std::int64_t>{spiking_step});
    CHECK(played.weights == wanted);
  }
}

TEST_CASE("without a spike a rule changes nothing", "[actors]") {
  Leading leading;
  const auto played = lead_to_end(calm_run(), leading);
  CHECK(leading.left_out.empty());
  CHECK(played.weights == LittleRun(calm_run()).plainly());
}

TEST_CASE("kills change neither the steps that are left out nor a bit", "[actors]") {
  const auto piece = spiking_run(enormous);
  const auto wanted = weights_without(piece, {spiking_step});
  std::uint64_t messages = 0;
  {
    Leading leading;
    messages = lead_to_end(piece, leading).messages;
  }
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    // The process is killed. Then all that its memory had of losses is gone.
    Leading leading;
    LittleRun run(piece);
    for (std::uint64_t life = 1; life <= 2; ++life) {
      Scene killed(run, seed);
      leading.lead(killed);
      killed.begin();
      killed.play(messages * seed / 61 / life);
    }
    Scene scene(run, seed);
    leading.lead(scene);
    scene.begin();
    const auto played = scene.finish();
    REQUIRE(played.outcome.how == Outcome::How::done);
    CHECK(leading.left_out == std::vector<std::int64_t>{spiking_step});
    CHECK(played.weights == wanted);
    CHECK(played.audit.flaw.empty());
  }
}

TEST_CASE("a spike ends a run that is to stop, before the step counts", "[actors]") {
  Leading leading;
  leading.rule.action = SpikeRule::Action::stop;
  const auto played = lead_to_end(spiking_run(enormous), leading);
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.why.starts_with("step 7: the loss is "));
  CHECK(played.outcome.why.find("train.on_spike = \"stop\"") != std::string::npos);
  CHECK(played.audit.steps == 6);
}

TEST_CASE("a run that spikes too often ends", "[actors]") {
  Leading leading;
  const auto played = lead_to_end(spiking_run(enormous, {7, 9}), leading);
  CHECK(played.outcome.how == Outcome::How::failed);
  CHECK(played.outcome.why.starts_with("step 9: the loss is "));
  CHECK(played.outcome.why.find("1 of the 4 steps before were left out already") !=
        std::string::npos);
  // A run that bears two of them leaves both out.
  Leading more;
  more.rule.most = 2;
  const auto done = lead_to_end(spiking_run(enormous, {7, 9}), more);
  CHECK(done.outcome.how == Outcome::How::done);
  CHECK(more.left_out == std::vector<std::int64_t>{7, 9});
  CHECK(done.weights == weights_without(spiking_run(enormous, {7, 9}), {7, 9}));
}

TEST_CASE("a run waits until it can write down what it leaves out", "[actors]") {
  LittleRun run(spiking_run(enormous));
  Scene scene(run, 1);
  Leading leading;
  leading.lead(scene);
  int tries = 0;
  scene.spec().leave_out =
      [&, write = scene.spec().leave_out](std::int64_t step) -> Result<RunSpecPtr> {
    if (++tries < 4) return Error{"the disk is full"};
    return write(step);
  };
  scene.begin();
  const auto played = scene.finish();
  CHECK(tries == 4);
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.told("warn") ==
        "the samples of step 7 are to be left out, but that cannot be written down: the disk is "
        "full\n");
  CHECK(played.weights == weights_without(spiking_run(enormous), {spiking_step}));
}

TEST_CASE("replicas and batch statistics leave out a step as one device does", "[actors]") {
  for (const std::string model : {"resnet", "gpt2"}) {
    CAPTURE(model);
    RoundShape alone, shared;
    alone.micro_batches = alone.groups = shared.micro_batches = shared.groups = 4;
    shared.stages = shared.replicas = 2;
    const auto played = [&](const RoundShape& shape) {
      auto piece = Piece::of(model, shape);
      piece.steps = 4;
      return weights_without(piece, {1, 3});
    };
    CHECK(played(alone) == played(shared));
  }
}
