// Training on a device gives the same weights and moments to the last bit.

#include "training.h"

#include "same.h"

namespace troupe::models {
namespace {

Digest trained(const Pipeline::Recipe& recipe, int steps, Device* device) {
  Pipeline pipeline(
      recipe,
      {.cuts = {1}, .device = device, .memory = device ? kernels::device_memory : host_memory});
  pipeline.start(5);
  const auto batch = made_batch(pipeline.stream(), recipe.model, 4, 1);
  for (int step = 0; step < steps; ++step) pipeline.step(batch);
  return pipeline.digest();
}

TEST_CASE("every model trains on a device with the bits of the cores") {
  const auto device = kernels::open_device();
  if (!device) return;
  for (const auto& model : small_models()) {
    CAPTURE(model.kind);
    auto optimizer = OptimizerConfig::of(model.kind == "mlp" ? OptimizerConfig::Kind::muon
                                                             : OptimizerConfig::Kind::adamw);
    optimizer.clip_norm = 0.5;
    const Pipeline::Recipe recipe{.model = model, .optimizer = optimizer, .micro_batches = 2};
    CHECK(trained(recipe, 2, device.get()) == trained(recipe, 2, nullptr));
  }
}

TEST_CASE("a device in fp16 skips the same steps as the cores and has their bits") {
  const auto device = kernels::open_device();
  if (!device) return;
  const auto models = small_models();
  const Pipeline::Recipe recipe{
      .model = models[1],
      .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
      .micro_batches = 2,
      .precision = kernels::Precision::fp16_chain,
      .loss_scaling = {.initial_power = LossScaling::most_power, .growth_interval = 2}};
  CHECK(trained(recipe, 8, device.get()) == trained(recipe, 8, nullptr));
}

}  // namespace
}  // namespace troupe::models
