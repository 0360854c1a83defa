// The places of predicted weights.

#include <cmath>

#include "async_pipes.h"
#include "catch.h"
#include "models/train/update_rule.h"
#include "scalar_pipeline.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;
using S = StalenessOptions;

}  // namespace

TEST_CASE("aggmsnag equals msnag if each micro-batch is a step", "[models]") {
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    auto settings = of_kind(2, 8, kind);
    settings.staleness.predict = S::Predict::msnag;
    const auto without = run(settings);
    settings.staleness.predict = S::Predict::aggmsnag;
    CHECK(same(run(settings), without));
  }
}

TEST_CASE("msnag predicts sgd's weights by a geometric series of the momentum", "[models]") {
  auto settings = of_kind(3, 10);
  settings.staleness.predict = S::Predict::msnag;
  const auto trace = run(settings);
  for (std::size_t m = 4; m < 10; ++m) {
    const double now = trace.theta[0][m - 3][0], before = trace.theta[0][m - 4][0];
    const double series = 0.9 * (1 - std::pow(0.9, 3)) / (1 - 0.9);
    CHECK(trace.forward[0][m][0] == Approx(now - series * (before - now)).epsilon(1e-12));
  }
}

TEST_CASE("sgd's prediction over many steps equals a simulation of each step", "[models]") {
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

TEST_CASE("sgd reaches its predicted weights if later gradients are zero", "[models]") {
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

TEST_CASE("the form of the momentum matters only if the learning rate changes", "[models]") {
  const auto form = [](ScalarRun settings, OptimizerConfig::MomentumForm form) {
    settings.optimizer.momentum_form = form;
    return run(settings).theta[0];
  };
  using Form = OptimizerConfig::MomentumForm;
  for (const auto& staleness : policies()) {
    if (staleness.lag > 0) continue;  // A lag needs longer windows.
    auto settings = of_kind(2, 8);
    settings.optimizer.weight_decay = 0.01;
    settings.staleness = staleness;
    const auto plain = form(settings, Form::pytorch), other = form(settings, Form::sutskever);
    // The forms scale the 1e-8 in the usual step differently, so results differ up to `margin`.
    const double margin = mends_gradients(staleness) ? 1e-7 : 1e-14;
    if (staleness.anneal_steps == 0)
      for (std::size_t n = 0; n < plain.size(); ++n)
        CHECK(other[n][0] == Approx(plain[n][0]).epsilon(1e-12).margin(margin));
    settings.optimizer.rate = {.kind = LearningRate::Kind::linear, .lr = 0.1, .total_steps = 10};
    CHECK(form(settings, Form::pytorch) != form(settings, Form::sutskever));
  }
  // Two steps on gradients of 1 with rates 0.1 and 0.05: in the second, v = 0.09 + 0.05.
  auto settings = of_kind(1, 2);
  settings.optimizer.rate = {.kind = LearningRate::Kind::linear, .lr = 0.1, .total_steps = 2};
  const auto theta = form(settings, Form::sutskever);
  CHECK(theta[2][0] == Approx(1 - 0.1 - (0.09 + 0.05)).epsilon(1e-12));
}

TEST_CASE("the guard of the second moment changes only predictions that would leap", "[models]") {
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

TEST_CASE("a look-ahead without delay equals Nesterov momentum", "[models]") {
  auto ahead = of_kind(0, 8);
  ahead.staleness.predict = S::Predict::msnag;
  ahead.staleness.nag = true;
  auto nesterov = of_kind(0, 8);
  nesterov.optimizer.nesterov = true;
  const auto points = run(ahead), steps = run(nesterov);
  for (std::size_t m = 0; m < 8; ++m)
    CHECK(points.forward[0][m][0] == Approx(steps.theta[0][m][0]).epsilon(1e-13));
}

TEST_CASE("spike compensation steps from one predicted point to the next", "[models]") {
  auto predicted = of_kind(2, 10), compensated = of_kind(2, 8);
  predicted.staleness.predict = S::Predict::msnag;
  compensated.staleness.spike_compensation = true;
  const auto points = run(predicted), steps = run(compensated);
  for (std::size_t n = 0; n < 8; ++n)
    CHECK(steps.theta[0][n][0] == Approx(points.forward[0][n + 2][0]).epsilon(1e-12));
}
