// What must hold of asynchronous training, whatever the numbers.

#include <algorithm>
#include <cmath>
#include <set>

#include "catch.h"
#include "models/update_rule.h"
#include "scalar_pipeline.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;
using S = StalenessOptions;

ScalarRun of_kind(int depth, int micro_batches, Kind kind = Kind::sgd) {
  ScalarRun run;
  run.depths = {depth};
  run.micro_batches = micro_batches;
  run.optimizer = OptimizerConfig::of(kind);
  run.optimizer.rate.lr = 0.1;
  run.optimizer.weight_decay = 0;
  if (kind == Kind::sgd) run.optimizer.momentum = 0.9;
  run.end = ScalarRun::End::outside;
  return run;
}

/// A curve, three stages, momentum: nothing cancels.
ScalarRun pipe(int micro_batches, int step_every) {
  ScalarRun run;
  run.weights = {{0.9, 1.1}, {1.2}, {0.8}};
  run.c = 0.2;
  run.depths = {2, 1, 0};
  run.x = {1, 0.5, -1, 2, 1.5, -0.5, 0.25, 1};
  run.t = {0.5, 0.25, -0.5, 1, 0.75, -0.25, 0.125, 0.5};
  run.micro_batches = micro_batches;
  run.step_every = step_every;
  run.optimizer = OptimizerConfig::of(Kind::sgd);
  run.optimizer.rate.lr = 0.02;
  run.optimizer.momentum = 0.9;
  return run;
}

S policy(S::Predict predict, S::LinearizeAt at, S::GapPenalty gap) {
  S staleness;
  staleness.predict = predict;
  staleness.linearize_at = at;
  staleness.gap_penalty = gap;
  return staleness;
}

std::vector<S> policies() {
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

}  // namespace

TEST_CASE("delays counted from lanes are those of the closed form", "[models]") {
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

TEST_CASE("a step's micro-batches see two versions at most, the older one first", "[models]") {
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

TEST_CASE("the order in which stages get their turns changes no bit", "[models]") {
  for (const auto& staleness : policies()) {
    auto settings = pipe(8, 2);
    settings.staleness = staleness;
    ScalarPipeline first(settings), second(settings);
    second.take_turns({2, 0, 1});
    first.round();
    second.round();
    CHECK(same(first.trace(), second.trace()));
  }
}

TEST_CASE("metrics change no bit", "[models]") {
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

TEST_CASE("metrics tell delays, and how far a prediction misses", "[models]") {
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

TEST_CASE("without delay every policy is plain training to the bit", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    auto settings = pipe(8, 2);
    settings.depths = {0, 0, 0};
    settings.optimizer.kind = kind;
    settings.optimizer.weight_decay = 0.01;
    settings.optimizer.clip_norm = 0.3;
    const auto wanted = run(settings);
    for (const auto& staleness : policies()) {
      if (staleness.lag > 0) continue;  // It lags by itself.
      settings.staleness = staleness;
      CHECK(same(run(settings), wanted));
    }
  }
}

TEST_CASE("flushed, one process and any cut take the same steps", "[models]") {
  auto flushed = pipe(8, 4);
  flushed.order = ScalarRun::Order::flush;
  auto alone = flushed;
  alone.weights = {{0.9, 1.1, 1.2, 0.8}};
  alone.depths = {0};
  const auto cut = run(flushed), whole = run(alone);
  CHECK(cut.theta[0].back()[0] == whole.theta[0].back()[0]);
  CHECK(cut.theta[0].back()[1] == whole.theta[0].back()[1]);
  CHECK(cut.theta[1].back()[0] == whole.theta[0].back()[2]);
  CHECK(cut.theta[2].back()[0] == whole.theta[0].back()[3]);
  CHECK(cut.loss == whole.loss);
}

TEST_CASE("at the forward pass's weights, computing again changes no bit", "[models]") {
  for (const auto predict : {S::Predict::none, S::Predict::msnag, S::Predict::aggmsnag}) {
    auto settings = pipe(8, 2);
    settings.staleness = policy(predict, S::LinearizeAt::forward, S::GapPenalty::none);
    const auto again = run(settings);
    settings.keep = Keep::everything;
    CHECK(same(run(settings), again));
  }
}

TEST_CASE("where a backward pass linearises makes three algorithms", "[models]") {
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

TEST_CASE("with a step for each micro-batch there is no gradient to count on", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    auto settings = of_kind(2, 8, kind);
    settings.staleness.predict = S::Predict::msnag;
    const auto without = run(settings);
    settings.staleness.predict = S::Predict::aggmsnag;
    CHECK(same(run(settings), without));
  }
}

TEST_CASE("sgd's momentum leads where a geometric series says", "[models]") {
  auto settings = of_kind(3, 10);
  settings.staleness.predict = S::Predict::msnag;
  const auto trace = run(settings);
  for (std::size_t m = 4; m < 10; ++m) {
    const double now = trace.theta[0][m - 3][0], before = trace.theta[0][m - 4][0];
    const double series = 0.9 * (1 - std::pow(0.9, 3)) / (1 - 0.9);
    CHECK(trace.forward[0][m][0] == Approx(now - series * (before - now)).epsilon(1e-12));
  }
}

TEST_CASE("three numbers do for any number of sgd's steps", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto number = [&](double value) {
    Tensor tensor = stream.make({1}, DType::f64);
    *tensor.data<double>() = value;
    return tensor;
  };
  auto config = OptimizerConfig::of(Kind::sgd);
  config.momentum = 0.9;
  config.weight_decay = 0.01;
  const Tensor weight = number(2), phi = number(-0.25);
  const std::vector<Tensor> moments{number(0.5)};
  std::vector<double> rates;
  double w = 2, v = 0.5, g = -0.25;
  for (int step = 0; step < 12; ++step) {
    rates.push_back(0.1 / (1 + step));
    v = 0.9 * v + (g + 0.01 * w);
    w -= rates.back() * v;
    g = 0;
    const Tensor found = sgd_rule.predict(stream, {.config = config,
                                                   .steps_done = 3,
                                                   .rates = rates,
                                                   .phi = phi,
                                                   .weight = weight,
                                                   .moments = moments});
    CHECK(*found.data<double>() == Approx(w).epsilon(1e-13));
  }
}

TEST_CASE("an optimizer goes where its prediction without gradients led", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto number = [&](double value) {
    Tensor tensor = stream.make({1}, DType::f64);
    *tensor.data<double>() = value;
    return tensor;
  };
  for (const auto form :
       {OptimizerConfig::MomentumForm::pytorch, OptimizerConfig::MomentumForm::sutskever})
    for (const bool nesterov : {false, true}) {
      auto config = OptimizerConfig::of(Kind::sgd);
      config.momentum = 0.9;
      config.momentum_form = form;
      config.nesterov = nesterov;
      config.weight_decay = 0.01;
      const Parameter parameter = [] {
        Parameter made;
        made.shape = {1};
        made.type = DType::f64;
        return made;
      }();
      Tensor weight = number(2);
      std::vector<Tensor> moments{number(0.5)};
      const Tensor start = number(2), phi = number(-0.25), zero = number(0);
      const std::vector<Tensor> at_start{number(0.5)};
      std::vector<double> rates;
      for (int step = 0; step < 6; ++step) {
        rates.push_back(step == 2 ? 0 : 0.1 / (1 + step));
        Tensor next = number(0);
        sgd_rule.apply(stream, {.config = config,
                                .parameter = parameter,
                                .step = 3 + step,
                                .lr = rates.back(),
                                .weight = weight,
                                .gradient = step == 0 ? phi : zero,
                                .decay_share = {},
                                .next = next,
                                .moments = moments});
        weight = next;
        const Tensor found = sgd_rule.predict(stream, {.config = config,
                                                       .steps_done = 3,
                                                       .rates = rates,
                                                       .phi = phi,
                                                       .weight = start,
                                                       .moments = at_start});
        CHECK(*found.data<double>() == Approx(*weight.data<double>()).epsilon(1e-13));
      }
    }
}

TEST_CASE("the momentum's form matters where the learning rate changes, and only there",
          "[models]") {
  const auto form = [](ScalarRun settings, OptimizerConfig::MomentumForm form) {
    settings.optimizer.momentum_form = form;
    return run(settings).theta[0];
  };
  using Form = OptimizerConfig::MomentumForm;
  for (const auto& staleness : policies()) {
    if (staleness.lag > 0) continue;  // It wants longer windows.
    auto settings = of_kind(2, 8);
    settings.optimizer.weight_decay = 0.01;
    settings.staleness = staleness;
    const auto plain = form(settings, Form::pytorch), other = form(settings, Form::sutskever);
    // Only what keeps a usual step from being 0 is another number, 1e-8 times the rate or not.
    const double margin = mends_gradients(staleness) ? 1e-7 : 1e-14;
    if (staleness.anneal_steps == 0)
      for (std::size_t n = 0; n < plain.size(); ++n)
        CHECK(other[n][0] == Approx(plain[n][0]).epsilon(1e-12).margin(margin));
    settings.optimizer.rate = {.kind = LearningRate::Kind::linear, .lr = 0.1, .total_steps = 10};
    CHECK(form(settings, Form::pytorch) != form(settings, Form::sutskever));
  }
  // The second of two steps on gradients of 1 with rates 0.1 and 0.05: v = 0.09 + 0.05.
  auto settings = of_kind(1, 2);
  settings.optimizer.rate = {.kind = LearningRate::Kind::linear, .lr = 0.1, .total_steps = 2};
  const auto theta = form(settings, Form::sutskever);
  CHECK(theta[2][0] == Approx(1 - 0.1 - (0.09 + 0.05)).epsilon(1e-12));
}

TEST_CASE("late rates rise once steps are late", "[models]") {
  const LearningRate rate{.lr = 0.1};
  Lateness lateness;
  lateness.delay = 4;
  lateness.staleness.anneal_steps = 2;
  lateness.staleness.synchronous_steps = 3;
  CHECK(late_rate(rate, lateness, 2) == 0.1);
  CHECK(late_rate(rate, lateness, 3) == Approx(0.1 / 4));
  CHECK(late_rate(rate, lateness, 4) == Approx(0.1 / 2));  // 4^(1/2)
  CHECK(late_rate(rate, lateness, 5) == 0.1);
}

TEST_CASE("the guard changes no prediction but those that would leap", "[models]") {
  auto settings = of_kind(2, 8, Kind::adam);
  settings.t.assign(16, 0.25);
  settings.staleness.predict = S::Predict::msnag;
  const auto guarded = run(settings);
  settings.staleness.second_moment = S::SecondMoment::frozen;
  CHECK(same(run(settings), guarded));

  settings.optimizer.weight_decay = 0.01;
  const auto leaping = run(settings);
  settings.staleness.second_moment = S::SecondMoment::guarded;
  const auto bounded = run(settings);
  CHECK(std::abs(leaping.forward[0][1][0]) > 1e4);
  for (std::size_t m = 0; m < 8; ++m) CHECK(std::abs(bounded.forward[0][m][0]) < 1.1);
}

TEST_CASE("a look-ahead without delay is Nesterov's method", "[models]") {
  auto ahead = of_kind(0, 8);
  ahead.staleness.predict = S::Predict::msnag;
  ahead.staleness.nag = true;
  auto nesterov = of_kind(0, 8);
  nesterov.optimizer.nesterov = true;
  const auto points = run(ahead), steps = run(nesterov);
  for (std::size_t m = 0; m < 8; ++m)
    CHECK(points.forward[0][m][0] == Approx(steps.theta[0][m][0]).epsilon(1e-13));
}

TEST_CASE("making up for a spike goes from one predicted point to the next", "[models]") {
  auto predicted = of_kind(2, 10), compensated = of_kind(2, 8);
  predicted.staleness.predict = S::Predict::msnag;
  compensated.staleness.spike_compensation = true;
  const auto points = run(predicted), steps = run(compensated);
  for (std::size_t n = 0; n < 8; ++n)
    CHECK(steps.theta[0][n][0] == Approx(points.forward[0][n + 2][0]).epsilon(1e-12));
}

TEST_CASE("the last update tells the gap as well as the old weights do", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    auto settings = of_kind(3, 16, kind);
    settings.t.assign(16, 0.25);
    settings.step_every = 4;
    settings.staleness.gap_penalty = S::GapPenalty::elementwise;
    const auto stashed = run(settings);
    settings.staleness.gap_source = S::GapSource::last_update;
    const auto told = run(settings);
    CHECK(stashed.penalty_most[0][4] > 1.5);
    for (std::size_t n = 0; n < stashed.theta[0].size(); ++n)
      CHECK(told.theta[0][n][0] == Approx(stashed.theta[0][n][0]).epsilon(1e-9));
  }
}

TEST_CASE("a late window is mended micro-batch by micro-batch", "[models]") {
  // The second window: three micro-batches came a step late, the last one in time. With momentum
  // 0.9, v = 1 after the first step, so that P = 1 + 0.1 / (0.1 (1 + 1e-8)); the step decays by the
  // mean of 1 / P. Clipping looks at the gradient without penalty.
  auto settings = of_kind(3, 8);
  settings.step_every = 4;
  settings.optimizer.weight_decay = 0.5;
  settings.staleness.gap_penalty = S::GapPenalty::elementwise;
  settings.staleness.linearize_at = S::LinearizeAt::forward;
  const auto theta = [&](double clip_norm) {
    settings.optimizer.clip_norm = clip_norm;
    const auto trace = run(settings);
    return std::pair(trace.theta[0][1][0], trace.theta[0][2][0]);
  };
  const auto second = [](double first, double v, double scale) {
    const double usual = v + 1e-8, penalty = 1 + v / usual;
    const double gradient = (3 / penalty + first) / 4, decay = 0.5 * first * (3 / penalty + 1) / 4;
    return first - 0.1 * (0.9 * v + scale * gradient + decay);
  };
  const auto [first, unclipped] = theta(0);
  CHECK(first == Approx(0.85).epsilon(1e-12));  // 1 - 0.1 (1 + 0.5)
  CHECK(unclipped == Approx(second(first, 1.5, 1)).epsilon(1e-12));
  const auto [clipped_first, clipped] = theta(0.5);
  const double scale = 0.5 / (1 + 1e-6), v = scale + 0.5;
  CHECK(clipped_first == Approx(1 - 0.1 * v).epsilon(1e-12));
  const double raw = (3 + clipped_first) / 4;
  CHECK(clipped == Approx(second(clipped_first, v, 0.5 / (raw + 1e-6))).epsilon(1e-12));
}

TEST_CASE("a penalty of one number for a scalar is the penalty of its element", "[models]") {
  auto settings = of_kind(2, 8);
  settings.staleness.gap_penalty = S::GapPenalty::elementwise;
  const auto elementwise = run(settings);
  settings.staleness.gap_penalty = S::GapPenalty::tensor_norm;
  const auto by_norm = run(settings);
  for (std::size_t n = 0; n < elementwise.theta[0].size(); ++n)
    CHECK(by_norm.theta[0][n][0] == Approx(elementwise.theta[0][n][0]).epsilon(1e-12));
}

TEST_CASE("a stage's penalty divides what the stage before gets", "[models]") {
  // One late gradient in the middle of three: the fresh part of the first stage's second step.
  const auto fresh = [](S::GapFactor factor) {
    ScalarRun settings = pipe(2, 1);
    settings.weights = {{0.9}, {1.2}, {0.8}};
    settings.staleness.gap_factor = factor;
    settings.staleness.linearize_at = S::LinearizeAt::forward;
    const auto theta = run(settings).theta[0];
    return theta[1][0] - theta[2][0] - 0.9 * (theta[0][0] - theta[1][0]);
  };
  // The first sample of the statistics is the last step, so that a gap of one step has P = 2.
  CHECK(fresh(S::GapFactor::none) / fresh(S::GapFactor::scalar) == Approx(2).epsilon(1e-6));
}

TEST_CASE("with two versions all stages see the same one, a step behind", "[models]") {
  auto settings = pipe(8, 2);
  settings.staleness.lag = 1;
  const auto trace = run(settings);
  for (std::size_t s = 0; s < 3; ++s)
    for (std::size_t m = 0; m < 8; ++m)
      CHECK(trace.forward[s][m] == trace.theta[s][m / 2 > 0 ? m / 2 - 1 : 0]);
}

TEST_CASE("stashing holds as many old versions as a pass is late", "[models]") {
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

TEST_CASE("after a drain nothing is held, and a round allocates nothing", "[models]") {
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

TEST_CASE("taken up again between rounds, training goes on to the bit", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw})
    for (const auto& staleness : policies()) {
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

// A weight with a use in each of two stages, both seen as the owner's forward pass saw it: then all
// is a function of that one weight, which a loop can follow.
TEST_CASE("what a borrower gives is penalised as late as the owner was", "[models]") {
  constexpr int count = 12;
  ScalarRun settings = pipe(8, 1);
  settings.weights = {{0.9}, {0.9}};
  settings.tied = true;
  settings.depths = {3, 0};
  settings.micro_batches = count;
  settings.x = {1, 0.5, -1, 2, 1.5, -0.5, 0.25, 1, -1.5, 0.75, 0.5, -0.25};
  settings.t.clear();
  for (const double x : settings.x) settings.t.push_back(x / 4);
  settings.optimizer.weight_decay = 0.1;
  settings.optimizer.clip_norm = 0.4;
  settings.staleness =
      policy(S::Predict::none, S::LinearizeAt::forward, S::GapPenalty::elementwise);
  for (const int k : {1, 2, 4}) {  // A third of a loss would be one of floats.
    settings.step_every = k;
    std::vector<double> theta{0.9};
    double v = 0, spread = 0;
    bool is_clipped = false;
    for (int first = 0; first < count; first += k) {
      const double now = theta.back(), c = settings.c, steps = first / k;
      const double usual = 0.02 * (std::sqrt(spread / (1 - std::pow(0.999, steps))) + 1e-8);
      double raw = 0, mended = 0, share = 0;
      for (int m = first; m < first + k; ++m) {
        const auto at = static_cast<std::size_t>(m);
        const double seen = theta[static_cast<std::size_t>(std::max(0, m - 3) / k)];
        const double h = seen * settings.x[at], z = h + c / 2 * h * h;
        const double u = seen * z, y = u + c / 2 * u * u;
        const double du = (y - settings.t[at]) / k * (1 + c * u), dh = du * seen * (1 + c * h);
        const double penalty = delay_of(m, 3, k) > 0 ? 1 + std::abs(now - seen) / usual : 1;
        raw += du * z + dh * settings.x[at];
        mended += (du * z + dh * settings.x[at]) / penalty;
        share += 1 / penalty / k;
      }
      const double scale = std::min(1.0, 0.4 / (std::abs(raw) + 1e-6));
      is_clipped = is_clipped || scale < 1;
      v = 0.9 * v + scale * mended + 0.1 * now * share;
      spread = 0.999 * spread + 0.001 * v * v;
      theta.push_back(now - 0.02 * v);
    }
    CHECK(is_clipped);
    const auto found = run(settings).theta[0];
    REQUIRE(found.size() == theta.size());
    for (std::size_t n = 0; n < theta.size(); ++n) {
      CAPTURE(k, n);
      CHECK(found[n][0] == Approx(theta[n]).epsilon(1e-12));
    }
  }
}

TEST_CASE("gradients of parameters that stages share may be penalised, not compensated",
          "[models]") {
  const std::vector<SharedParameter> tied = {{"wte.weight", {0, 2}}};
  S penalised, compensated;
  penalised.gap_penalty = S::GapPenalty::elementwise;
  compensated.delay_compensation = 0.5;
  CHECK(check_shared(penalised, tied).ok());
  CHECK(check_shared(compensated, {}).ok());
  CHECK_FALSE(check_shared(compensated, tied).ok());
}
