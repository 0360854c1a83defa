#include "kernels/steps.h"

#include <limits>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

const SgdStep plain_sgd{.lr = 0.5,
                        .momentum = 0.5,
                        .weight_decay = 0,
                        .gradient_scale = 1,
                        .kind = SgdStep::Momentum::plain,
                        .turn = SgdStep::Turn::first};

TEST_CASE("sgd sets the momentum in its first step and updates it in later ones", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats w{1, 2, 3}, g{4, 8, -2};
  Floats momentum(3, 99), next(3);
  auto step = plain_sgd;
  sgd_step(stream, step, w.data(), g.data(), momentum.data(), next.data(), 3);
  CHECK(momentum == Floats{4, 8, -2});
  CHECK(next == Floats{-1, -2, 4});
  step.turn = SgdStep::Turn::later;
  sgd_step(stream, step, w.data(), g.data(), momentum.data(), next.data(), 3);
  CHECK(momentum == Floats{6, 12, -3});
  CHECK(next == Floats{-2, -4, 4.5f});
}

TEST_CASE("sgd with Nesterov momentum looks ahead", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats w{1}, g{4};
  Floats momentum{2}, next(1);
  auto step = plain_sgd;
  step.kind = SgdStep::Momentum::nesterov;
  step.turn = SgdStep::Turn::later;
  sgd_step(stream, step, w.data(), g.data(), momentum.data(), next.data(), 1);
  CHECK(momentum[0] == 5);                  // 0.5 * 2 + 4
  CHECK(next[0] == 1 - 0.5f * (4 + 2.5f));  // 4 + 0.5 * 5
}

TEST_CASE("sgd scales the gradient and then adds weight decay to it", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats w{8}, g{4};
  Floats momentum(1), next(1);
  auto step = plain_sgd;
  step.gradient_scale = 0.25;
  step.weight_decay = 0.125;
  sgd_step(stream, step, w.data(), g.data(), momentum.data(), next.data(), 1);
  CHECK(momentum[0] == 2);  // 4 / 4 + 8 / 8
  CHECK(next[0] == 7);
}

TEST_CASE("sgd takes a step without a momentum buffer", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats w{1, 2}, g{4, 8};
  Floats next(2);
  sgd_step(stream, plain_sgd, w.data(), g.data(), nullptr, next.data(), 2);
  CHECK(next == Floats{-1, -2});
}

/// The Adam and AdamW of PyTorch for one weight, in double.
struct Adam {
  double lr, beta1, beta2, eps, weight_decay;
  WeightDecay decay;
  double w, m = 0, v = 0;

  void step(double g, int t) {
    if (decay == WeightDecay::decoupled)
      w *= 1 - lr * weight_decay;
    else
      g += weight_decay * w;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(beta2, t)) + eps;
    w -= lr / (1 - std::pow(beta1, t)) * m / denominator;
  }
};

TEST_CASE("adam and adamw take the steps of PyTorch's formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::int64_t n = 37;
  for (const auto decay : {WeightDecay::coupled, WeightDecay::decoupled}) {
    auto w = numbers(n, 1);
    Floats m(w.size(), 0), v(w.size(), 0), next(w.size());
    std::vector<Adam> expected;
    for (const float weight : w)
      expected.push_back({0.01, 0.9, 0.999, 1e-8, 0.1, decay, static_cast<double>(weight)});
    for (int t = 1; t <= 20; ++t) {
      const auto g = numbers(n, static_cast<std::uint64_t>(100 + t));
      adam_step(stream,
                {.lr = 0.01,
                 .beta1 = 0.9,
                 .beta2 = 0.999,
                 .eps = 1e-8,
                 .weight_decay = 0.1,
                 .gradient_scale = 0.5,
                 .m_scale = 1 / (1 - std::pow(0.9, t)),
                 .g_scale = 0,
                 .v_scale = 1 / std::sqrt(1 - std::pow(0.999, t)),
                 .decay = decay},
                w.data(), g.data(), m.data(), v.data(), next.data(), n);
      std::swap(w, next);
      for (std::size_t i = 0; i < w.size(); ++i) {
        expected[i].step(0.5 * g[i], t);
        CHECK(w[i] == Approx(expected[i].w).epsilon(3e-6).margin(1e-6));
        CHECK(m[i] == Approx(expected[i].m).epsilon(1e-5).margin(1e-7));
        CHECK(v[i] == Approx(expected[i].v).epsilon(2e-6));
      }
    }
  }
}

TEST_CASE("adam adds g_scale times the gradient to its step, as NAdam needs", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats w{1}, g{4};
  Floats m{8}, v{16}, next(1);
  adam_step(stream,
            {.lr = 0.5,
             .beta1 = 0.5,
             .beta2 = 0.5,
             .eps = 4,
             .weight_decay = 0,
             .gradient_scale = 1,
             .m_scale = 2,
             .g_scale = 3,
             .v_scale = 1,
             .decay = WeightDecay::decoupled},
            w.data(), g.data(), m.data(), v.data(), next.data(), 1);
  CHECK(m[0] == 6);
  CHECK(v[0] == 16);
  CHECK(next[0] == 1 - 0.5f * (2 * 6 + 3 * 4) / (4 + 4));
}

TEST_CASE("sum_of_squares adds its blocks by a tree in double", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  CHECK(sum_of_squares(stream, static_cast<const float*>(nullptr), 0) == 0);
  const Floats three{1, -2, 3};
  CHECK(sum_of_squares(stream, three.data(), 3) == 14);

  // Five blocks: ((0 + 1) + (2 + 3)) + 4. Doubles near 2^60 are 256 apart, so a single 100 is lost,
  // but not the sum of two.
  Floats x(4 * 65536 + 3, 0);
  x[0] = 0x1p30f;
  for (const std::size_t place : {65536, 2 * 65536 + 5, 3 * 65536 + 7, 4 * 65536 + 2})
    x[place] = 10;
  CHECK(sum_of_squares(stream, x.data(), static_cast<std::int64_t>(x.size())) == 0x1p60 + 256);

  // The squares are far beyond the range of a float.
  const Floats large(10, 1e30f);
  CHECK(sum_of_squares(stream, large.data(), 10) == Approx(1e61));
}

TEST_CASE("squares_of_blocks writes the sums of all tensors in order", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::vector<double> small{3, 4}, none, one{-2};
  std::vector<double> large(65'536 + 2, 0);
  large[0] = 5;
  large[65'536] = 6;
  large[65'537] = 1;
  const std::vector<std::span<const double>> tensors{small, none, large, one};
  std::vector<double> sums(5, -1);
  squares_of_blocks(stream, tensors, sums.data());
  CHECK(sums == std::vector<double>{25, 25, 37, 4, -1});
}

TEST_CASE("accumulate adds one tensor to another", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  Floats a(19, 1);
  const Floats b(19, 2);
  accumulate(stream, a.data(), b.data(), 19);
  CHECK(a == Floats(19, 3));
}

TEST_CASE("all_finite finds a NaN or an infinity at any position", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  CHECK(all_finite(stream, nullptr, 0));
  for (const std::size_t n : {std::size_t{1}, std::size_t{33}, std::size_t{40'000}}) {
    Floats x(n, std::numeric_limits<float>::max());
    const auto count = static_cast<std::int64_t>(n);
    CHECK(all_finite(stream, x.data(), count));
    for (const std::size_t place : {std::size_t{0}, n / 2, n - 1})
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()}) {
        x[place] = bad;
        CHECK_FALSE(all_finite(stream, x.data(), count));
        x[place] = 0;
      }
  }
}

TEST_CASE("optimizer steps have the same bits with any number of threads and instruction set",
          "[kernels]") {
  const std::int64_t n = 70'003;
  const auto w = numbers(n, 1), g = numbers(n, 2);
  CHECK(same_bits([&](Stream& stream) {
    Floats m = numbers(n, 3), v(w.size(), 0.01f), next(w.size());
    sgd_step(stream, plain_sgd, w.data(), g.data(), m.data(), next.data(), n);
    adam_step(stream, {0.01, 0.9, 0.999, 1e-8, 0.1, 0.7, 2, 0.1, 3, WeightDecay::coupled},
              next.data(), g.data(), m.data(), v.data(), next.data(), n);
    accumulate(stream, m.data(), v.data(), n);
    next.insert(next.end(), m.begin(), m.end());
    next.push_back(static_cast<float>(sum_of_squares(stream, m.data(), n)));
    return next;
  }));
}

}  // namespace
}  // namespace troupe::kernels
