// Corrections of late gradients.

#include <algorithm>
#include <cmath>

#include "async_pipes.h"
#include "catch.h"
#include "scalar_pipeline.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;
using S = StalenessOptions;

}  // namespace

TEST_CASE("late_rate divides by the delay after the synchronous steps and anneals back",
          "[models]") {
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

TEST_CASE("gap penalties from the last update equal those from stashed weights", "[models]") {
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

namespace {

struct LastUpdateCase {
  const char* name;
  Kind kind;
  double weight_decay = 0;
  bool nesterov = false, spike_compensation = false;
};

/// A reference for one weight of such a run. Between steps, `gap` is the change by the last step.
struct Mended {
  double now = 0, gap = 0, moment = 0, square = 0, spread = 0;
  int steps = 0;

  /// Returns the usual length of a step.
  double usual(Kind kind, double lr) const {
    const double memory = 0.999, mean = spread / (1 - std::pow(memory, steps));
    return kind == Kind::sgd ? lr * (std::sqrt(mean) + 1e-8) : std::sqrt(mean) + 1e-8;
  }
  double penalty(Kind kind, double lr) const {
    return steps == 0 ? 1 : 1 + std::abs(gap) / usual(kind, lr);
  }
  /// Takes a step; `share` is the mean of 1 / P over the micro-batches of the gradient.
  void step(const LastUpdateCase& of, double lr, double gradient, double share) {
    const double before = now;
    ++steps;
    if (of.kind == Kind::sgd) {
      gradient += of.weight_decay * now * share;
      moment = 0.9 * moment + gradient;
      const bool adds_gradient = of.nesterov || of.spike_compensation;  // Compensates for one step.
      now -= lr * (adds_gradient ? gradient + 0.9 * moment : moment);
      spread = 0.999 * spread + 0.001 * moment * moment;
    } else {
      moment = 0.9 * moment + 0.1 * gradient;
      square = 0.999 * square + 0.001 * gradient * gradient;
      const double along = moment / (1 - std::pow(0.9, steps)) /
                           (std::sqrt(square / (1 - std::pow(0.999, steps))) + 1e-8);
      now = now * (1 - lr * of.weight_decay * share) - lr * along;
      spread = 0.999 * spread + 0.001 * lr * along * lr * along;
    }
    gap = now - before;
  }
};

}  // namespace

// y = b a x, and each micro-batch adds (y - t)^2 / 2k. The first micro-batch of a step is one step
// late; with two versions (lag) each micro-batch is. Its gradient is taken at the weights before
// the last step and divided by 1 + gap / usual, where gap is the change of a weight by that step.
TEST_CASE("gaps from the last update are right with decay, Nesterov and spike compensation",
          "[models]") {
  constexpr int count = 16;
  for (const auto& of : {LastUpdateCase{"penalised decay", Kind::adamw, 0.5},
                         LastUpdateCase{"nesterov", Kind::sgd, 0.1, true},
                         LastUpdateCase{"spike compensation", Kind::sgd, 0.1, false, true}})
    for (const int lag : {0, 1})
      for (const int k : {1, 2, 4}) {
        ScalarRun settings = of_kind(1, count, of.kind);
        settings.weights = {{0.9, 1.1}};
        for (int m = 0; m < count; ++m) {
          settings.x[static_cast<std::size_t>(m)] = 1 + 0.25 * (m % 3);
          settings.t[static_cast<std::size_t>(m)] = 0.5;
        }
        settings.step_every = k;
        const double lr = settings.optimizer.rate.lr = 0.02;
        settings.optimizer.weight_decay = of.weight_decay;
        settings.optimizer.nesterov = of.nesterov;
        settings.staleness =
            policy(S::Predict::none, S::LinearizeAt::forward, S::GapPenalty::elementwise);
        settings.staleness.spike_compensation = of.spike_compensation;
        settings.staleness.lag = lag;
        settings.staleness.gap_source = S::GapSource::last_update;

        Mended a{.now = 0.9}, b{.now = 1.1};
        std::vector<std::vector<double>> theta{{a.now, b.now}};
        std::vector<double> penalties;
        for (int n = 0; n < count / k; ++n) {
          double da = 0, db = 0, share_a = 0, share_b = 0;
          const double penalty_a = a.penalty(of.kind, lr), penalty_b = b.penalty(of.kind, lr);
          for (int m = n * k; m < (n + 1) * k; ++m) {
            const bool is_late = n > 0 && (lag > 0 || m % k == 0);
            const auto& seen = theta[static_cast<std::size_t>(is_late ? n - 1 : n)];
            const double x = settings.x[static_cast<std::size_t>(m)];
            const double miss = (seen[1] * seen[0] * x - 0.5) / k;
            const double pa = is_late ? penalty_a : 1, pb = is_late ? penalty_b : 1;
            da += miss * seen[1] * x / pa;
            db += miss * seen[0] * x / pb;
            share_a += 1 / pa / k;
            share_b += 1 / pb / k;
            penalties.push_back((pa + pb) / 2);
          }
          a.step(of, lr, da, share_a);
          b.step(of, lr, db, share_b);
          theta.push_back({a.now, b.now});
        }
        const auto told = run(settings);
        settings.staleness.gap_source = S::GapSource::stash;
        const auto stashed = run(settings);
        CAPTURE(of.name, lag, k);
        REQUIRE(told.theta[0].size() == theta.size());
        for (std::size_t n = 0; n < theta.size(); ++n)
          for (const std::size_t weight : {0u, 1u}) {
            CAPTURE(n, weight);
            CHECK(told.theta[0][n][weight] == Approx(theta[n][weight]).epsilon(1e-12));
            CHECK(stashed.theta[0][n][weight] == Approx(theta[n][weight]).epsilon(1e-12));
          }
        for (std::size_t m = 0; m < penalties.size(); ++m)
          CHECK(told.penalty_mean[0][m] == Approx(penalties[m]).epsilon(1e-9));
      }
}

TEST_CASE("gap penalties apply to each micro-batch of a late step separately", "[models]") {
  // In the second window, three micro-batches are one step late and the last one is in time. With
  // momentum 0.9, v = 1 after the first step, so P = 1 + 0.1 / (0.1 (1 + 1e-8)). The step scales
  // its weight decay by the mean of 1 / P. Clipping uses the gradient without penalty.
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

TEST_CASE("the tensor-norm penalty of a scalar equals its elementwise penalty", "[models]") {
  auto settings = of_kind(2, 8);
  settings.staleness.gap_penalty = S::GapPenalty::elementwise;
  const auto elementwise = run(settings);
  settings.staleness.gap_penalty = S::GapPenalty::tensor_norm;
  const auto by_norm = run(settings);
  for (std::size_t n = 0; n < elementwise.theta[0].size(); ++n)
    CHECK(by_norm.theta[0][n][0] == Approx(elementwise.theta[0][n][0]).epsilon(1e-12));
}

TEST_CASE("a stage's gap factor divides the gradient that it sends to the previous stage",
          "[models]") {
  // Returns the fresh part of the first stage's second step. Only the middle gradient is late.
  const auto fresh = [](S::GapFactor factor) {
    ScalarRun settings = pipe(2, 1);
    settings.weights = {{0.9}, {1.2}, {0.8}};
    settings.staleness.gap_factor = factor;
    settings.staleness.linearize_at = S::LinearizeAt::forward;
    const auto theta = run(settings).theta[0];
    return theta[1][0] - theta[2][0] - 0.9 * (theta[0][0] - theta[1][0]);
  };
  // The first sample of the statistics is the last step, so a gap of one step has P = 2.
  CHECK(fresh(S::GapFactor::none) / fresh(S::GapFactor::scalar) == Approx(2).epsilon(1e-6));
}

// A weight used in two stages, both at the version of the owner's forward pass. The run is then a
// function of one weight, which a loop can reproduce.
TEST_CASE("gradients from a borrowing stage get the penalty of the owner's delay", "[models]") {
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
  settings.staleness =
      policy(S::Predict::none, S::LinearizeAt::forward, S::GapPenalty::elementwise);
  // The reported norm has no penalty, with or without clipping.
  for (const auto& [k, clip_norm] : std::vector<std::pair<int, double>>{
           {1, 0.4}, {2, 0.4}, {4, 0.4}, {1, 0}, {2, 0}, {4, 0}}) {  // 1 / 3 is inexact in float.
    settings.step_every = k;
    settings.optimizer.clip_norm = clip_norm;
    std::vector<double> theta{0.9}, raw_norms, penalised_norms;
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
      const double scale = clip_norm > 0 ? std::min(1.0, clip_norm / (std::abs(raw) + 1e-6)) : 1;
      raw_norms.push_back(std::abs(raw));
      penalised_norms.push_back(std::abs(mended));
      is_clipped = is_clipped || scale < 1;
      v = 0.9 * v + scale * mended + 0.1 * now * share;
      spread = 0.999 * spread + 0.001 * v * v;
      theta.push_back(now - 0.02 * v);
    }
    CHECK(is_clipped == (clip_norm > 0));
    const auto trace = run(settings);
    const auto& found = trace.theta[0];
    REQUIRE(trace.norm[0].size() == raw_norms.size());
    bool is_penalised = false;
    for (std::size_t n = 0; n < raw_norms.size(); ++n) {
      CAPTURE(k, n, clip_norm);
      CHECK(trace.norm[0][n] == Approx(raw_norms[n]).epsilon(1e-12));
      CHECK(trace.penalised_norm[0][n] == Approx(penalised_norms[n]).epsilon(1e-12));
      is_penalised = is_penalised || penalised_norms[n] < 0.9 * raw_norms[n];
    }
    CHECK(is_penalised);
    REQUIRE(found.size() == theta.size());
    for (std::size_t n = 0; n < theta.size(); ++n) {
      CAPTURE(k, n);
      CHECK(found[n][0] == Approx(theta[n]).epsilon(1e-12));
    }
  }
}

// Two versions of w (used in two stages) and of u (the second stage's own). Step n sees version n -
// 1. Both stages divide by 1 + gap / usual: the second by its own factor, the first by the larger
// of both.
TEST_CASE("norms are taken before a gap factor divides, also for borrowed weights", "[models]") {
  constexpr int count = 12, k = 2;
  ScalarRun settings = pipe(8, 1);
  settings.weights = {{0.9}, {0.9, 0.7}};
  settings.tied = true;
  settings.depths = {1, 0};
  settings.micro_batches = count;
  settings.step_every = k;
  settings.x = {1, 0.5, -1, 2, 1.5, -0.5, 0.25, 1, -1.5, 0.75, 0.5, -0.25};
  settings.t.clear();
  for (const double x : settings.x) settings.t.push_back(x / 4);
  settings.staleness.lag = 1;
  settings.staleness.gap_factor = S::GapFactor::max;
  for (const double clip_norm : {0.0, 0.3}) {
    settings.optimizer.clip_norm = clip_norm;
    struct Trained {
      std::vector<double> theta;
      double v = 0, spread = 0;
      double raw = 0, mended = 0;

      double factor(int step) const {
        if (step == 0) return 1;
        const double usual = 0.02 * (std::sqrt(spread / (1 - std::pow(0.999, step))) + 1e-8);
        const auto n = static_cast<std::size_t>(step);
        return 1 + std::abs(theta[n] - theta[n - 1]) / usual;
      }
      void step(double scale) {
        v = 0.9 * v + scale * mended;
        spread = 0.999 * spread + 0.001 * v * v;
        theta.push_back(theta.back() - 0.02 * v);
        raw = mended = 0;
      }
    };
    Trained w{.theta = {0.9}}, u{.theta = {0.7}};
    std::vector<double> w_norms, u_norms, w_penalised;
    for (int n = 0; n < count / k; ++n) {
      const auto seen = static_cast<std::size_t>(std::max(0, n - 1));
      const double behind = u.factor(n), largest = std::max(behind, w.factor(n));
      for (int m = n * k; m < (n + 1) * k; ++m) {
        const auto at = static_cast<std::size_t>(m);
        const double c = settings.c, a = w.theta[seen], b = u.theta[seen], x = settings.x[at];
        const double h0 = a * x, z0 = h0 + c / 2 * h0 * h0;
        const double h1 = a * z0, z1 = h1 + c / 2 * h1 * h1;
        const double h2 = b * z1, y = h2 + c / 2 * h2 * h2;
        const double d2 = (y - settings.t[at]) / k * (1 + c * h2);
        const double d1 = d2 * b * (1 + c * h1), d0 = d1 * a * (1 + c * h0);
        u.raw += d2 * z1;
        u.mended += d2 * z1 / behind;
        w.raw += d1 * z0 + d0 * x;
        w.mended += d1 * z0 / behind + d0 * x / largest;
      }
      w_norms.push_back(std::abs(w.raw));
      u_norms.push_back(std::abs(u.raw));
      w_penalised.push_back(std::abs(w.mended));
      const auto scale = [&](double norm) {
        return clip_norm > 0 ? std::min(1.0, clip_norm / (norm + 1e-6)) : 1;
      };
      w.step(scale(w_norms.back()));
      u.step(scale(u_norms.back()));
    }
    const auto trace = run(settings);
    for (std::size_t n = 0; n < w_norms.size(); ++n) {
      CAPTURE(clip_norm, n);
      CHECK(trace.norm[0][n] == Approx(w_norms[n]).epsilon(1e-12));
      CHECK(trace.norm[1][n] == Approx(u_norms[n]).epsilon(1e-12));
      CHECK(trace.penalised_norm[0][n] == Approx(w_penalised[n]).epsilon(1e-12));
      CHECK(trace.theta[0][n + 1][0] == Approx(w.theta[n + 1]).epsilon(1e-12));
      CHECK(trace.theta[1][n + 1][1] == Approx(u.theta[n + 1]).epsilon(1e-12));
    }
    CHECK(w_penalised.back() < 0.9 * w_norms.back());
  }
}

TEST_CASE("shared parameters allow a gap penalty but no delay compensation", "[models]") {
  const std::vector<SharedParameter> tied = {{"wte.weight", {0, 2}}};
  S penalised, compensated;
  penalised.gap_penalty = S::GapPenalty::elementwise;
  compensated.delay_compensation = 0.5;
  CHECK(check_shared(penalised, tied).ok());
  CHECK(check_shared(compensated, {}).ok());
  CHECK_FALSE(check_shared(compensated, tied).ok());
}
