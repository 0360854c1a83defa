// Properties of asynchronous training that hold for all numbers.

#include <algorithm>
#include <set>

#include "async_pipes.h"
#include "catch.h"
#include "core/random.h"
#include "scalar_pipeline.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;
using S = StalenessOptions;

/// Returns an order of turns that has each stage twice, drawn by `seed`.
std::vector<std::size_t> drawn_turns(std::size_t stages, std::uint64_t seed) {
  std::vector<std::size_t> turns;
  for (std::size_t turn = 0; turn < 2 * stages; ++turn) turns.push_back(turn % stages);
  const RandomKey key{.seed = seed};
  for (std::size_t left = turns.size(); left > 1; --left)
    std::swap(turns[left - 1], turns[key.words(static_cast<std::uint32_t>(left))[0] % left]);
  return turns;
}

}  // namespace

TEST_CASE("delays measured in a pipeline match the closed form", "[models]") {
  for (const int depth : {0, 1, 2, 3, 5, 7})
    for (const int k : {1, 2, 3, 4, 8})
      for (const int n : {1, 4, 9, 16}) {
        auto settings = of_kind(depth, n);
        settings.step_every = k;
        const auto trace = run(settings);
        CAPTURE(depth, k, n);
        for (int m = 0; m < n; ++m) {
          const auto at = static_cast<std::size_t>(m);
          CHECK(trace.delays[0][at] == delay_of(m, depth, k));
          const auto version = static_cast<std::size_t>(std::max(0, m - depth) / k);
          CHECK(trace.forward[0][at] == trace.theta[0][version]);
        }
      }
}

TEST_CASE("micro-batches of a step have at most two delays, the larger one first", "[models]") {
  for (int depth = 0; depth < 9; ++depth)
    for (int k = 1; k < 9; ++k)
      for (int window = 0; window < 6; ++window) {
        std::set<int> delays;
        int last = depth + 1;
        for (int m = window * k; m < (window + 1) * k; ++m) {
          const int delay = delay_of(m, depth, k);
          CHECK(delay <= last);
          CHECK(delay <= (depth + k - 1) / k);
          delays.insert(last = delay);
        }
        CHECK(delays.size() <= 2);
      }
}

TEST_CASE("the order in which stages run changes no bit", "[models]") {
  for (const auto& staleness : policies()) {
    auto settings = pipe(8, 2);
    settings.staleness = staleness;
    const auto wanted = run(settings);
    const auto check = [&](std::vector<std::size_t> turns) {
      CAPTURE(turns);
      ScalarPipeline pipeline(settings);
      pipeline.take_turns(std::move(turns));
      pipeline.round();
      CHECK(same(pipeline.trace(), wanted));
    };
    check({2, 0, 1});
    for (std::uint64_t seed = 1; seed <= 10; ++seed) check(drawn_turns(3, seed));
  }
}

TEST_CASE("measuring metrics changes no bit", "[models]") {
  auto all = policies();
  auto& told = all.emplace_back(
      policy(S::Predict::none, S::LinearizeAt::current, S::GapPenalty::elementwise));
  told.gap_source = S::GapSource::last_update;
  for (const auto& staleness : all) {
    auto settings = pipe(8, 2);
    settings.staleness = staleness;
    const auto measured = run(settings);
    settings.is_measured = false;
    CHECK(same(run(settings), measured));
  }
}

TEST_CASE("metrics report delays and the error of predictions", "[models]") {
  auto settings = of_kind(2, 8);
  const auto of = [&](S::Predict predict) {
    settings.staleness.predict = predict;
    ScalarPipeline pipeline(settings);
    pipeline.keep_metrics();
    pipeline.round();
    return pipeline.take_metrics(0);
  };
  const auto stale = of(S::Predict::none), predicted = of(S::Predict::msnag);
  CHECK(stale.delays == std::vector<int>{1, 1, 6});
  CHECK(stale.prediction_error == Approx(1));
  CHECK(predicted.prediction_error < 1);
  CHECK(predicted.gap < stale.gap);
}

TEST_CASE("every policy without delay has the bits of plain training", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    auto settings = pipe(8, 2);
    settings.depths = {0, 0, 0};
    settings.optimizer.kind = kind;
    settings.optimizer.weight_decay = 0.01;
    settings.optimizer.clip_norm = 0.3;
    const auto wanted = run(settings);
    for (const auto& staleness : policies()) {
      if (staleness.lag > 0) continue;  // A lag delays by itself.
      settings.staleness = staleness;
      CHECK(same(run(settings), wanted));
    }
  }
}

TEST_CASE("a pipeline with flushes takes the steps of a single stage, wherever it is cut",
          "[models]") {
  const std::vector<double> weights = {0.9, 1.1, 1.2, 0.8};
  auto settings = pipe(8, 4);
  settings.order = ScalarRun::Order::flush;
  settings.weights = {weights};
  settings.depths = {0};
  const auto whole = run(settings);
  REQUIRE(whole.theta[0].size() == 3);  // The first weights and two steps.
  CHECK(whole.theta[0][0] != whole.theta[0][1]);
  CHECK(whole.theta[0][1] != whole.theta[0][2]);
  // Bit i of `cuts` cuts the pipeline after weight i.
  for (unsigned cuts = 1; cuts < 8; ++cuts) {
    CAPTURE(cuts);
    settings.weights.clear();
    settings.weights.emplace_back();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      settings.weights.back().push_back(weights[i]);
      if ((cuts >> i & 1) != 0) settings.weights.emplace_back();
    }
    settings.depths.clear();
    for (std::size_t s = settings.weights.size(); s > 0; --s)
      settings.depths.push_back(static_cast<int>(s) - 1);
    const auto cut = run(settings);
    CHECK(cut.loss == whole.loss);
    for (std::size_t step = 0; step < whole.theta[0].size(); ++step) {
      std::vector<double> together;
      for (const auto& stage : cut.theta) {
        REQUIRE(stage.size() == whole.theta[0].size());
        together.insert(together.end(), stage[step].begin(), stage[step].end());
      }
      CHECK(together == whole.theta[0][step]);
    }
  }
}

TEST_CASE("recomputation changes no bit if backward passes use the forward pass's weights",
          "[models]") {
  for (const auto predict : {S::Predict::none, S::Predict::msnag, S::Predict::aggmsnag}) {
    auto settings = pipe(8, 2);
    settings.staleness = policy(predict, S::LinearizeAt::forward, S::GapPenalty::none);
    const auto again = run(settings);
    settings.keep = Keep::everything;
    CHECK(same(run(settings), again));
  }
}

TEST_CASE("linearization points and recomputation give different results", "[models]") {
  auto settings = pipe(6, 1);
  settings.staleness.predict = S::Predict::msnag;
  const auto again = run(settings);
  settings.keep = Keep::everything;
  const auto kept = run(settings);
  settings.staleness.linearize_at = S::LinearizeAt::forward;
  const auto stashed = run(settings);
  settings.staleness.linearize_at = S::LinearizeAt::extrapolated;
  const auto extrapolated = run(settings);
  std::set<double> ends;
  for (const auto* trace : {&again, &kept, &stashed, &extrapolated})
    ends.insert(trace->theta[0].back()[0]);
  CHECK(ends.size() == 4);
}

TEST_CASE("all stages use the weights of the previous step if the lag is 1", "[models]") {
  auto settings = pipe(8, 2);
  settings.staleness.lag = 1;
  const auto trace = run(settings);
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t m = 0; m < 8; ++m)
      CHECK(trace.forward[s][m] == trace.theta[s][m / 2 > 0 ? m / 2 - 1 : 0]);
}

TEST_CASE("stashing holds one old version for each step of delay", "[models]") {
  for (const int k : {1, 2, 3, 4}) {
    const auto most_held = [&](S::LinearizeAt at) {
      auto settings = of_kind(3, 16);
      settings.step_every = k;
      settings.staleness.linearize_at = at;
      settings.is_measured = false;
      ScalarPipeline pipeline(settings);
      pipeline.round();
      return pipeline.most_held_after_a_step();
    };
    CAPTURE(k);
    const auto extra = most_held(S::LinearizeAt::forward) - most_held(S::LinearizeAt::current);
    MemoryPool memory;
    Stream stream(memory);
    const Tensor one = stream.make({1}, DType::f64);
    CHECK(extra == static_cast<std::size_t>((3 + k - 1) / k) * memory.counters().bytes_in_use);
  }
}

TEST_CASE("a drained pipeline holds only its state and allocates nothing in later rounds",
          "[models]") {
  for (const auto& staleness : policies()) {
    auto settings = pipe(8, 2);
    settings.staleness = staleness;
    ScalarPipeline pipeline(settings);
    for (int round = 0; round < 2; ++round) pipeline.round();
    const auto before = pipeline.memory().counters();
    for (int round = 0; round < 2; ++round) pipeline.round();
    const auto after = pipeline.memory().counters();
    CHECK(after.allocations == before.allocations);
    CHECK(after.bytes_in_use == before.bytes_in_use);
    std::size_t tensors = 0;
    for (std::size_t s = 0; s < 3; ++s) tensors += pipeline.saved(s).size() + pipeline.held_back(s);
    MemoryPool memory;
    Stream stream(memory);
    const Tensor one = stream.make({1}, DType::f64);
    CHECK(after.bytes_in_use == tensors * memory.counters().bytes_in_use);
  }
}

TEST_CASE("training restored between rounds continues with the same bits", "[models]") {
  auto all = policies();
  auto& told = all.emplace_back(
      policy(S::Predict::none, S::LinearizeAt::current, S::GapPenalty::elementwise));
  told.gap_source = S::GapSource::last_update;
  all.emplace_back(told).spike_compensation = true;
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw})
    for (const auto& staleness : all) {
      auto settings = pipe(7, 2);
      settings.optimizer.kind = kind;
      settings.optimizer.weight_decay = 0.01;
      settings.staleness = staleness;
      ScalarPipeline whole(settings), again(settings);
      whole.round();
      for (std::size_t s = 0; s < 3; ++s) again.restore(s, whole.saved(s), 4);
      whole.round();
      again.round();
      for (std::size_t s = 0; s < 3; ++s) CHECK(again.theta(s) == whole.theta(s));
      CHECK(again.trace().loss == whole.trace().loss);
    }
}
