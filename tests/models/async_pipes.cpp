#include "async_pipes.h"

namespace troupe::models {

ScalarRun of_kind(int depth, int micro_batches, OptimizerConfig::Kind kind) {
  ScalarRun run;
  run.depths = {depth};
  run.micro_batches = micro_batches;
  run.optimizer = OptimizerConfig::of(kind);
  run.optimizer.rate.lr = 0.1;
  run.optimizer.weight_decay = 0;
  if (kind == OptimizerConfig::Kind::sgd) run.optimizer.momentum = 0.9;
  run.end = ScalarRun::End::outside;
  return run;
}

ScalarRun pipe(int micro_batches, int step_every) {
  ScalarRun run;
  run.weights = {{0.9, 1.1}, {1.2}, {0.8}};
  run.c = 0.2;
  run.depths = {2, 1, 0};
  run.x = {1, 0.5, -1, 2, 1.5, -0.5, 0.25, 1};
  run.t = {0.5, 0.25, -0.5, 1, 0.75, -0.25, 0.125, 0.5};
  run.micro_batches = micro_batches;
  run.step_every = step_every;
  run.optimizer = OptimizerConfig::of(OptimizerConfig::Kind::sgd);
  run.optimizer.rate.lr = 0.02;
  run.optimizer.momentum = 0.9;
  return run;
}

StalenessOptions policy(StalenessOptions::Predict predict, StalenessOptions::LinearizeAt at,
                        StalenessOptions::GapPenalty gap) {
  StalenessOptions staleness;
  staleness.predict = predict;
  staleness.linearize_at = at;
  staleness.gap_penalty = gap;
  return staleness;
}

std::vector<StalenessOptions> policies() {
  using S = StalenessOptions;
  std::vector<S> all;
  for (const auto predict :
       {S::Predict::none, S::Predict::msnag, S::Predict::aggmsnag, S::Predict::linear})
    for (const auto at :
         {S::LinearizeAt::current, S::LinearizeAt::forward, S::LinearizeAt::extrapolated})
      for (const auto gap :
           {S::GapPenalty::none, S::GapPenalty::elementwise, S::GapPenalty::tensor_norm})
        all.push_back(policy(predict, at, gap));
  auto& compensated = all.emplace_back();
  compensated.delay_compensation = 0.5;
  auto& factor = all.emplace_back();
  factor.gap_factor = S::GapFactor::scalar;
  auto& annealed = all.emplace_back();
  annealed.anneal_steps = 4;
  auto& lagging = all.emplace_back();
  lagging.lag = 1;
  return all;
}

bool same(const ScalarTrace& a, const ScalarTrace& b) {
  return a.theta == b.theta && a.forward == b.forward && a.loss == b.loss;
}

}  // namespace troupe::models
