// Training on tensor cores is close to PyTorch's in float64, and repeatable to the bit.

#include <algorithm>
#include <cmath>
#include <vector>

#include "golden_trace.h"
#include "models/arithmetic.h"
#include "same.h"

namespace troupe::models {
namespace {

using kernels::Precision;

Way on(Device& device) {
  return {.cuts = {1}, .device = &device, .memory = kernels::device_memory};
}

/// Returns a loss scale if the precision needs one.
LossScaling scaling(Precision precision, int power) {
  if (!kernels::is_fp16(precision)) return {};
  return {.initial_power = power, .growth_interval = 4};
}

struct Nearness {
  Precision precision;
  double loss, weights;
};

TEST_CASE("training on tensor cores follows PyTorch's trace") {
  const auto device = kernels::open_tensor_cores();
  if (!device) return;
  // A gradient near zero may change its sign in few bits, and AdamW takes a full step for it.
  const auto near =
      GENERATE(Nearness{Precision::tf32, 5e-3, 3e-2}, Nearness{Precision::fp16_gpu, 1e-2, 5e-2},
               Nearness{Precision::bf16_gpu, 2e-2, 5e-2});
  const std::string kind = GENERATE("mlp", "gpt2", "llama", "vit", "resnet");
  CAPTURE(to_string(near.precision), kind);
  MemoryPool memory;
  const auto trace = GoldenTrace::read(kind, "adamw", memory);
  Pipeline pipeline({.model = trace.model,
                     .optimizer = trace.optimizer,
                     .micro_batches = trace.micro_batches,
                     .precision = near.precision,
                     .loss_scaling = scaling(near.precision, 8)},
                    on(*device));
  pipeline.start_from(trace.initial);
  double furthest = 0;
  for (const Value& row : *trace.steps.list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({trace.input.slice(step * trace.samples, trace.samples),
                                       trace.target.slice(step * trace.samples, trace.samples)});
    furthest = std::max(furthest, relative(result.loss, row.find("loss")->number()));
  }
  auto found = pipeline.weights();
  for (auto& [name, tensor] : found) tensor = pipeline.stream().to_host(tensor);
  pipeline.stream().wait();
  CHECK(furthest < near.loss);
  CHECK(distance(found, trace.final) < near.weights);
  CHECK(pipeline.loss_scale().skipped_steps == 0);
}

TEST_CASE("training on tensor cores has the same bits each time and with any cut or split") {
  const auto device = kernels::open_tensor_cores();
  if (!device) return;
  const auto precision = GENERATE(Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  for (const auto& model : small_models()) {
    CAPTURE(to_string(precision), model.kind);
    const auto trained = [&](const Way& way) {
      Pipeline pipeline({.model = model,
                         .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
                         .micro_batches = 2,
                         .precision = precision,
                         .loss_scaling = scaling(precision, 10)},
                        way);
      pipeline.start(5);
      const auto batch = made_batch(pipeline.stream(), model, 4, 1);
      for (int step = 0; step < 2; ++step) pipeline.step(batch);
      return pipeline.digest();
    };
    const auto first = trained(on(*device));
    CHECK(trained(on(*device)) == first);
    Way halves = on(*device);
    halves.backward = Way::Backward::in_halves;
    halves.keep = Keep::input;
    CHECK(trained(halves) == first);
    Way uncut = on(*device);
    uncut.cuts = {};
    CHECK(trained(uncut) == first);
  }
}

/// Returns convolution weights so small that the following batch norms, which undo that in the
/// forward pass, have large gradients in the backward pass.
std::vector<NamedTensor> with_steep_norms(const Model& model, Stream& stream) {
  Pipeline pipeline(
      {.model = model, .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw)}, {});
  pipeline.start(5);
  auto all = pipeline.weights();
  for (auto& [name, tensor] : all) {
    tensor = copied(stream, tensor);
    if (tensor.shape().rank() != 4) continue;
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.f32()[i] *= 0x1p-10f;
  }
  return all;
}

// The cores' fp16 precision keeps these gradients in fp32, so they do not overflow there.
TEST_CASE("the loss scale detects an overflow between layers") {
  const auto device = kernels::open_tensor_cores();
  if (!device) return;
  const auto models = small_models();
  const auto& resnet = *std::ranges::find(models, "resnet", &Model::kind);
  MemoryPool memory;
  Stream stream(memory);
  const auto initial = with_steep_norms(resnet, stream);
  const auto scale_after = [&](int steps, Precision precision, const Way& way) {
    Pipeline pipeline({.model = resnet,
                       .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
                       .micro_batches = 2,
                       .precision = precision,
                       .loss_scaling = {.initial_power = 16, .growth_interval = 100}},
                      way);
    pipeline.start_from(initial);
    const auto batch = made_batch(pipeline.stream(), resnet, 4, 1);
    for (int step = 0; step < steps; ++step) CHECK(std::isfinite(pipeline.step(batch).loss));
    return pipeline.loss_scale();
  };
  CHECK(scale_after(1, Precision::fp16_chain, {.cuts = {1}}).skipped_steps == 0);
  CHECK(scale_after(1, Precision::fp16_gpu, on(*device)).skipped_steps == 1);
  const auto scale = scale_after(12, Precision::fp16_gpu, on(*device));
  CHECK(scale.skipped_steps < 12);  // The scale has dropped to where nothing overflows.
  CHECK(scale.power == 16 - scale.skipped_steps);
}

}  // namespace
}  // namespace troupe::models
