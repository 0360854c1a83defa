// Whole training in bf16 on a device: near to PyTorch's in float64, and the same bits each time.

#include "golden_trace.h"
#include "same.h"

namespace troupe::models {
namespace {

constexpr auto precision = kernels::Precision::bf16_gpu;

Way on(Device& device) {
  return {.cuts = {1}, .device = &device, .memory = kernels::device_memory};
}

TEST_CASE("training in bf16 follows PyTorch's trace") {
  const auto device = kernels::open_device_for_bf16();
  if (!device) return;
  const std::string kind = GENERATE("mlp", "gpt2", "llama", "vit", "resnet");
  CAPTURE(kind);
  MemoryPool memory;
  const auto trace = GoldenTrace::read(kind, "adamw", memory);
  Pipeline pipeline({.model = trace.model,
                     .optimizer = trace.optimizer,
                     .micro_batches = trace.micro_batches,
                     .precision = precision},
                    on(*device));
  pipeline.start_from(trace.initial);
  for (const Value& row : *trace.steps.list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({trace.input.slice(step * trace.samples, trace.samples),
                                       trace.target.slice(step * trace.samples, trace.samples)});
    CAPTURE(step);
    CHECK(relative(result.loss, row.find("loss")->number()) < 2e-2);
  }
  // A gradient near zero has another sign in bf16, and AdamW steps as far for it as for others.
  auto found = pipeline.weights();
  for (auto& [name, tensor] : found) tensor = pipeline.stream().to_host(tensor);
  pipeline.stream().wait();
  CHECK(distance(found, trace.final) < 5e-2);
}

TEST_CASE("training in bf16 has the same bits each time, and however it is done") {
  const auto device = kernels::open_device_for_bf16();
  if (!device) return;
  for (const auto& model : small_models()) {
    CAPTURE(model.kind);
    const auto trained = [&](const Way& way) {
      Pipeline pipeline({.model = model,
                         .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
                         .micro_batches = 2,
                         .precision = precision},
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
  }
}

}  // namespace
}  // namespace troupe::models
