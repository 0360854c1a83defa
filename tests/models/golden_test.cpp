// Compares layers, stages and optimizers with PyTorch's traces in float64.

#include <algorithm>

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

TEST_CASE("training in fp16 stays near PyTorch's trace", "[models]") {
  MemoryPool memory;
  const auto trace = GoldenTrace::read("gpt2", "adamw", memory);
  Pipeline pipeline({.model = trace.model,
                     .optimizer = trace.optimizer,
                     .micro_batches = trace.micro_batches,
                     .precision = kernels::Precision::fp16_chain,
                     .loss_scaling = {.initial_power = 10, .growth_interval = 4}},
                    {});
  pipeline.start_from(trace.initial);

  double furthest = 0;
  for (const Value& row : *trace.steps.list()) {
    const auto step = *row.find("step")->integer();
    const auto result = pipeline.step({trace.input.slice(step * trace.samples, trace.samples),
                                       trace.target.slice(step * trace.samples, trace.samples)});
    CAPTURE(step);
    furthest = std::max(furthest, relative(result.loss, row.find("loss")->number()));
    CHECK(relative(result.norm, row.find("grad_norm")->number()) < 1e-2);
  }
  CHECK(furthest < 1e-3);
  CHECK(furthest > 1e-6);  // The run really uses fp16.
  CHECK(distance(pipeline.weights(), trace.final) < 1e-2);
  CHECK(pipeline.loss_scale().power > 10);
}
