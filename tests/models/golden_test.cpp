// The layers, stages and optimizers against PyTorch's traces in float64.

#include "catch.h"
#include "golden_trace.h"

using namespace troupe;
using namespace troupe::models;

TEST_CASE("training follows PyTorch's trace", "[models]") {
  const std::string kind = GENERATE("mlp", "gpt2", "llama", "vit", "resnet");
  const std::string optimizer = GENERATE("sgd", "adam", "adamw", "adamw-cosine");
  CAPTURE(kind, optimizer);
  MemoryPool memory;
  const auto trace = GoldenTrace::read(kind, optimizer, memory);
  Pipeline pipeline(
      {.model = trace.model, .optimizer = trace.optimizer, .micro_batches = trace.micro_batches},
      {});
  pipeline.start_from(trace.initial);

  for (const Value& row : *trace.steps.list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({trace.input.slice(step * trace.samples, trace.samples),
                                       trace.target.slice(step * trace.samples, trace.samples)});
    CAPTURE(step);
    CHECK(relative(result.loss, row.find("loss")->number()) < 1e-5);
    CHECK(relative(result.norm, row.find("grad_norm")->number()) < 1e-4);
    CHECK(relative(trace.optimizer.rate.at(step), row.find("lr")->number()) < 1e-12);
  }
  CHECK(pipeline.weights().size() == trace.final.size());
  CHECK(distance(pipeline.weights(), trace.final) < 1e-4);
}

TEST_CASE("in fp16 training stays near PyTorch's trace", "[models]") {
  const std::string folder = golden + "gpt2/";
  const Value trace = read_trace(folder + "adamw.json");
  const Model model = model_of(trace);
  const auto micro_batches = static_cast<int>(*trace.find("micro_batches")->integer());
  const auto samples = micro_batches * *trace.find("micro_batch_size")->integer();
  MemoryPool memory;
  Pipeline pipeline({.model = model,
                     .optimizer = optimizer_of(trace),
                     .micro_batches = micro_batches,
                     .precision = kernels::Precision::fp16,
                     .loss_scaling = {.initial_power = 10, .growth_interval = 4}},
                    {});
  pipeline.start_from(read_tensors(folder + "init.safetensors", memory));
  const auto data = read_tensors(folder + "data.safetensors", memory);

  double furthest = 0;
  for (const Value& row : *trace.find("trace")->list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({find(data, "input").slice(step * samples, samples),
                                       find(data, "target").slice(step * samples, samples)});
    CAPTURE(step);
    furthest = std::max(furthest, relative(result.loss, row.find("loss")->number()));
    CHECK(relative(result.norm, row.find("grad_norm")->number()) < 1e-2);
  }
  CHECK(furthest < 1e-3);
  CHECK(furthest > 1e-6);  // It does compute in fp16.
  const auto wanted = read_tensors(folder + "adamw.final.safetensors", memory);
  CHECK(distance(pipeline.weights(), wanted) < 1e-2);
  CHECK(pipeline.loss_scale().power > 10);
}
