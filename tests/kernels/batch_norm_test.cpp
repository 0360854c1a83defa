#include "kernels/batch_norm.h"

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

constexpr float eps = 1e-5f;

const ImageShape shapes[] = {{2, 1, 1}, {1, 3, 5}, {3, 2, 16}, {4, 5, 7}, {2, 3, 35}};

std::int64_t count(const ImageShape& shape) { return shape.batch * shape.channels * shape.pixels; }

/// A batch norm with random inputs and the results of its kernels.
struct BatchNorm {
  BatchNorm(const ImageShape& s, Stream& stream)
      : x(numbers_up_to(3, count(s), 1)),
        dy(numbers(count(s), 2)),
        weight(numbers_up_to(2, s.channels, 3)),
        bias(numbers(s.channels, 4)),
        y(x.size()),
        dx(dy),
        mean(weight.size()),
        rstd(weight.size()),
        variance(weight.size()),
        dweight(weight.size(), 0),
        dbias(weight.size(), 0) {
    batch_norm_forward(stream, s, x.data(), weight.data(), bias.data(), y.data(), mean.data(),
                       rstd.data(), variance.data(), eps);
    batch_norm_backward_input(stream, s, x.data(), weight.data(), mean.data(), rstd.data(),
                              dx.data(), dx.data());
    batch_norm_backward_weight(stream, s, x.data(), mean.data(), rstd.data(), dy.data(),
                               dweight.data(), dbias.data());
  }

  Floats x, dy, weight, bias;
  Floats y, dx, mean, rstd, variance, dweight, dbias;
};

/// Calls body(i) for each element of a channel.
template <class Body>
void each(const ImageShape& s, std::int64_t channel, Body body) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t p = 0; p < s.pixels; ++p)
      body(static_cast<std::size_t>((b * s.channels + channel) * s.pixels + p));
}

Doubles reference(const ImageShape& s, const Doubles& x, const Doubles& weight,
                  const Doubles& bias) {
  Doubles y(x.size());
  const double n = static_cast<double>(s.batch * s.pixels);
  for (std::size_t c = 0; c < weight.size(); ++c) {
    const auto channel = static_cast<std::int64_t>(c);
    double mean = 0, variance = 0;
    each(s, channel, [&](std::size_t i) { mean += x[i] / n; });
    each(s, channel, [&](std::size_t i) { variance += (x[i] - mean) * (x[i] - mean) / n; });
    each(s, channel, [&](std::size_t i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + eps) * weight[c] + bias[c];
    });
  }
  return y;
}

TEST_CASE("batch norm and its gradients agree with their formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto& s : shapes) {
    INFO(s.batch << " x " << s.channels << " x " << s.pixels);
    const BatchNorm norm(s, stream);
    const auto x = doubles(norm.x), weight = doubles(norm.weight), bias = doubles(norm.bias);
    CHECK(close(norm.y, reference(s, x, weight, bias), 4));
    CHECK(close(norm.dx,
                numerical_gradient([&](const Doubles& v) { return reference(s, v, weight, bias); },
                                   norm.x, norm.dy),
                16));
    CHECK(close(norm.dweight,
                numerical_gradient([&](const Doubles& v) { return reference(s, x, v, bias); },
                                   norm.weight, norm.dy),
                4));
    CHECK(close(norm.dbias,
                numerical_gradient([&](const Doubles& v) { return reference(s, x, weight, v); },
                                   norm.bias, norm.dy),
                4));
  }
}

TEST_CASE("batch norm stays accurate far from 0 and returns its statistics", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats x{1'000'001, 1'000'002, 1'000'003, 1'000'004}, one{1}, zero{0};
  Floats y(4), mean(1), rstd(1), variance(1);
  batch_norm_forward(stream, {2, 1, 2}, x.data(), one.data(), zero.data(), y.data(), mean.data(),
                     rstd.data(), variance.data(), 0);
  CHECK(mean[0] == 1'000'002.5f);
  CHECK(variance[0] == Approx(5.0 / 3));
  CHECK(rstd[0] == Approx(1 / std::sqrt(1.25)));
  CHECK(y[0] == Approx(-1.5 / std::sqrt(1.25)));
}

TEST_CASE("batch norm of a single number has variance 0", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats x{5}, one{1}, two{2};
  Floats y(1), mean(1), rstd(1), variance(1);
  batch_norm_forward(stream, {1, 1, 1}, x.data(), one.data(), two.data(), y.data(), mean.data(),
                     rstd.data(), variance.data(), 0.25f);
  CHECK(y[0] == 2);
  CHECK(mean[0] == 5);
  CHECK(rstd[0] == 2);
  CHECK(variance[0] == 0);
}

TEST_CASE("batch norm uses the given mean and variance in evaluation", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats x{1, 2, 3, 4}, weight{2, 10}, bias{100, 200}, mean{1, 4}, variance{3, 0};
  Floats y(4);
  batch_norm_apply(stream, {1, 2, 2}, x.data(), weight.data(), bias.data(), mean.data(),
                   variance.data(), y.data(), 1);
  CHECK(y == Floats{100, 101, 190, 200});
}

TEST_CASE("average pooling takes the mean of a channel and spreads its gradient evenly",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const ImageShape shape{2, 1, 3};
  const Floats x{1, 2, 6, 10, 20, 30}, dy{3, 6};
  Floats y(2), dx(6);
  average_pool_forward(stream, shape, x.data(), y.data());
  CHECK(y == Floats{3, 20});
  average_pool_backward(stream, shape, dy.data(), dx.data());
  CHECK(dx == Floats{1, 1, 1, 2, 2, 2});
}

TEST_CASE("batch norm and pooling have the same bits with any threads and instruction set",
          "[kernels]") {
  const ImageShape shape{7, 5, 1023};
  CHECK(same_bits([&](Stream& stream) {
    const BatchNorm norm(shape, stream);
    Floats all(static_cast<std::size_t>(shape.batch * shape.channels));
    average_pool_forward(stream, shape, norm.y.data(), all.data());
    for (const auto* part : {&norm.y, &norm.dx, &norm.dweight, &norm.dbias, &norm.variance})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }));
}

}  // namespace
}  // namespace troupe::kernels
