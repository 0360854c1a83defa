// Whole training on a device: the same weights and moments, to the last bit.

#include "training.h"

#include "same.h"

namespace troupe::models {
namespace {

Digest trained(const Model& model, const OptimizerConfig& optimizer, Device* device) {
  Pipeline pipeline({.model = model, .optimizer = optimizer, .micro_batches = 2},
                    {.cuts = {1},
                     .device = device,
                     .memory = device ? kernels::cuda::shared_memory : host_memory});
  pipeline.start(5);
  const auto batch = made_batch(pipeline.stream(), model, 4, 1);
  for (int step = 0; step < 2; ++step) pipeline.step(batch);
  return pipeline.digest();
}

TEST_CASE("every model trains on a device to the bits of the cores") {
  const auto device = kernels::open_device();
  if (!device) return;
  for (const auto& model : small_models()) {
    CAPTURE(model.kind);
    auto optimizer = OptimizerConfig::of(model.kind == "mlp" ? OptimizerConfig::Kind::muon
                                                             : OptimizerConfig::Kind::adamw);
    optimizer.clip_norm = 0.5;
    CHECK(trained(model, optimizer, device.get()) == trained(model, optimizer, nullptr));
  }
}

}  // namespace
}  // namespace troupe::models
