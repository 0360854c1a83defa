// Weight prediction and remedies for late gradients are repeated work too, with new numbers each
// time.

#include "kernels/cuda/device.h"
#include "models/stale/training_stage.h"
#include "same.h"
#include "training.h"

namespace troupe::models {
namespace {

using kernels::cuda::graph_counts;
using S = StalenessOptions;

struct Trained {
  Digest digest;
  kernels::cuda::GraphCounts early,
      late;  // Ten steps after `early`.
};

/// Trains one stage that is a forward pass ahead and steps after every backward pass. Uses the
/// cores if `device` is null.
Trained train(const Model& model, const OptimizerConfig& config, const S& staleness, int steps,
              Device* device) {
  MemoryPool memory(device ? kernels::device_memory() : host_memory());
  Stream stream = device ? Stream(memory, *device) : Stream(memory);
  TrainingStage stage(model, {0, static_cast<int>(model.units.size())}, {}, staleness, config, {});
  Optimizer optimizer(config, stage.passes().parameters(), stage.passes().buffers(),
                      kernels::Precision::fp32,
                      {.staleness = staleness, .delay = 1, .borrowed = {}});
  WeightsPtr weights = optimizer.initial(stream, 5);
  stage.adopt({.weights = weights, .moments = {}});
  std::vector<int> delays(static_cast<std::size_t>(steps), 1);
  delays[0] = 0;
  stage.begin_round(
      {.delays = delays, .step_every = 1, .share = Share::whole(1, 1), .targets_in_step = 4});
  MemoryPool host;
  Stream cores(host);
  const Batch batch = made_batch(cores, model, 4, 1);
  const auto forward = [&](int m) {
    stage.forward(stream, {.step = m, .index = m, .first_sample = 0}, stream.to_here(batch.input),
                  stream.to_here(batch.target), {});
  };
  Trained trained;
  forward(0);
  for (int m = 0; m < steps; ++m) {
    if (device && m == steps - 12) trained.early = graph_counts(*device);
    if (device && m == steps - 2) trained.late = graph_counts(*device);
    if (m + 1 < steps) forward(m + 1);
    stage.backward(stream, m, {});
    std::vector<GradientShare> shares;
    shares.push_back(stage.take_gradients(stream));
    auto gradients = join(stream, std::move(shares));
    const double norm = global_norm(optimizer.squared_norms(stream, gradients));
    weights = optimizer.step(stream, weights, std::move(gradients), norm);
    stage.adopt({.weights = weights, .moments = optimizer.moments()});
  }
  auto named = optimizer.named(*weights);
  for (auto& [name, tensor] : named) tensor = stream.to_host(tensor);
  stream.wait();
  Digester digester;
  for (const auto& [name, tensor] : named) digester.add(tensor.host_bytes());
  trained.digest = digester.finish();
  return trained;
}

struct Remedy {
  const char* name;
  int graphs;  // Graphs in a step besides those of both passes and the update.
  void (*choose)(S& staleness);
  OptimizerConfig::Kind kind = OptimizerConfig::Kind::adamw;
};
const auto remedies = {
    Remedy{"predicted", 1, [](S& s) { s.predict = S::Predict::msnag; }},
    Remedy{"predicted on a line", 1, [](S& s) { s.predict = S::Predict::linear; },
           OptimizerConfig::Kind::sgd},
    Remedy{"extrapolated", 1, [](S& s) { s.linearize_at = S::LinearizeAt::extrapolated; }},
    Remedy{"predicted and penalised", 2,
           [](S& s) {
             s.predict = S::Predict::msnag;
             s.gap_penalty = S::GapPenalty::elementwise;
           }},
    Remedy{"penalised by the last update", 1,
           [](S& s) {
             s.gap_penalty = S::GapPenalty::elementwise;
             s.gap_source = S::GapSource::last_update;
           }},
    Remedy{"compensated", 1, [](S& s) { s.delay_compensation = 0.1; }, OptimizerConfig::Kind::sgd},
};

TEST_CASE("remedies for late gradients run as graphs, with the bits of the cores") {
  const auto remedy = GENERATE(values(remedies));
  const auto device = kernels::open_device();
  if (!device) return;
  CAPTURE(remedy.name);
  S staleness;
  remedy.choose(staleness);
  auto config = OptimizerConfig::of(remedy.kind);
  config.rate = {.kind = LearningRate::Kind::cosine, .warmup_steps = 2, .total_steps = 40};
  config.momentum = 0.9;
  const auto models = small_models();
  const auto on_cores = train(models[1], config, staleness, 24, nullptr);
  const auto found = train(models[1], config, staleness, 24, device.get());
  CHECK(found.digest == on_cores.digest);
  CAPTURE(found.early.played, found.late.played, found.early.plain, found.late.recorded);
  CHECK(found.late.plain == found.early.plain);
  CHECK(found.late.refused == 0);
  CHECK(found.late.played - found.early.played ==
        10 * static_cast<std::uint64_t>(3 + remedy.graphs));
}

}  // namespace
}  // namespace troupe::models
