// Repeated passes run as graphs and give the same bits.

#include "kernels/cuda/device.h"
#include "same.h"
#include "training.h"

namespace troupe::models {
namespace {

using kernels::cuda::graph_counts;

struct Played {
  Digest digest;
  kernels::cuda::GraphCounts early, late;  // The counts after half of the steps and after all.
  std::uint64_t early_allocations = 0, late_allocations = 0;
};

Played play(const Pipeline::Recipe& recipe, Way way, int steps, Device* device) {
  way.cuts = {1};
  way.device = device;
  if (device) way.memory = kernels::device_memory;
  Pipeline pipeline(recipe, way);
  pipeline.start(5);
  const auto batch = made_batch(pipeline.stream(), recipe.model, 4, 1);
  Played played;
  for (int step = 0; step < steps; ++step) {
    if (device && step == steps / 2) {
      played.early = graph_counts(*device);
      played.early_allocations = pipeline.memory().counters().allocations;
    }
    pipeline.step(batch);
  }
  if (device) played.late = graph_counts(*device);
  played.late_allocations = pipeline.memory().counters().allocations;
  played.digest = pipeline.digest();
  return played;
}

void check_steady(const Played& played) {
  CAPTURE(played.late.played, played.late.plain, played.late.recorded);
  CHECK(played.late.played > played.early.played);
  CHECK(played.late.recorded == played.early.recorded);
  CHECK(played.late.plain == played.early.plain);
  CHECK(played.late.refused == 0);
  CHECK(played.late_allocations == played.early_allocations);
}

TEST_CASE("every model soon trains with graphs only and has the bits of the cores") {
  for (const auto& model : small_models())
    for (const bool is_split : {false, true}) {
      const auto device = kernels::open_device();
      if (!device) return;
      CAPTURE(model.kind, is_split);
      Way way;
      if (is_split) {
        way.backward = Way::Backward::in_halves;
        way.keep = Keep::input;
      }
      const Pipeline::Recipe recipe{.model = model,
                                    .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
                                    .micro_batches = is_split ? 2 : 4,
                                    .groups = 2};
      const auto played = play(recipe, way, 12, device.get());
      CHECK(played.digest == play(recipe, way, 12, nullptr).digest);
      check_steady(played);
    }
}

TEST_CASE("an optimizer's steps run as graphs with new numbers each time") {
  using Kind = OptimizerConfig::Kind;
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw, Kind::nadamw, Kind::muon}) {
    const auto device = kernels::open_device();
    if (!device) return;
    CAPTURE(static_cast<int>(kind));
    auto optimizer = OptimizerConfig::of(kind);
    optimizer.rate = {.kind = LearningRate::Kind::cosine, .warmup_steps = 4, .total_steps = 30};
    optimizer.momentum = 0.9;
    optimizer.clip_norm = 0.1;
    const auto models = small_models();
    const Pipeline::Recipe recipe{.model = models[1], .optimizer = optimizer, .micro_batches = 2};
    const auto played = play(recipe, {}, 12, device.get());
    CHECK(played.digest == play(recipe, {}, 12, nullptr).digest);
    check_steady(played);
    // A step has two passes of each micro-batch and the update, in both stages. The norm is a
    // single launch. Muon waits for norms within its update.
    const auto in_step = (played.late.played - played.early.played) / 6;
    CHECK((kind == Kind::muon ? in_step > 10 : in_step == 10));
  }
}

TEST_CASE("a graph uses new random numbers and a new loss scale in each step") {
  const auto device = kernels::open_device();
  if (!device) return;
  const auto models = small_models();
  const Pipeline::Recipe recipe{
      .model = models[1],
      .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
      .micro_batches = 2,
      .precision = kernels::Precision::fp16_chain,
      .loss_scaling = {.initial_power = LossScaling::most_power, .growth_interval = 2}};
  const auto played = play(recipe, {}, 24, device.get());
  CHECK(played.digest == play(recipe, {}, 24, nullptr).digest);
  CHECK(played.late.played > played.early.played);
  CHECK(played.late.refused == 0);
}

TEST_CASE("graphs in bf16 contain calls of NVIDIA's libraries and give the same bits") {
  for (const auto& model : small_models()) {
    const auto device = kernels::open_tensor_cores();
    if (!device) return;
    CAPTURE(model.kind);
    const Pipeline::Recipe recipe{.model = model,
                                  .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
                                  .micro_batches = 2,
                                  .precision = kernels::Precision::bf16_gpu};
    const auto played = play(recipe, {}, 12, device.get());
    check_steady(played);
    Way plainly;
    plainly.short_rows = 0;
    const auto other = kernels::open_device();
    CHECK(play(recipe, plainly, 12, other.get()).digest == played.digest);
    CHECK(graph_counts(*other).played == 0);
  }
}

}  // namespace
}  // namespace troupe::models
