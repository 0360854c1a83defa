#include "kernels/norm.h"

#include <limits>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

constexpr float eps = 1e-5f;

enum class Kind { layer, rms };

struct Sizes {
  std::int64_t rows;
  std::int64_t columns;
};
const Sizes sizes[] = {{1, 1}, {2, 3}, {3, 16}, {5, 17}, {4, 61}, {2, 131}, {130, 17}};

/// A norm with random inputs and the results of its kernels.
struct Norm {
  Norm(Kind kind, const Sizes& s, Stream& stream)
      : x(numbers_up_to(3, s.rows * s.columns, 1)),
        dy(numbers(s.rows * s.columns, 2)),
        weight(numbers_up_to(2, s.columns, 3)),
        bias(numbers(s.columns, 4)),
        y(x.size()),
        dx(dy),
        dweight(numbers(s.columns, 5)),
        dbias(numbers(s.columns, 6)),
        mean(static_cast<std::size_t>(s.rows)),
        rstd(mean.size()) {
    const auto [rows, columns] = s;
    switch (kind) {
      case Kind::layer:
        layer_norm_forward(stream, x.data(), weight.data(), bias.data(), y.data(), mean.data(),
                           rstd.data(), rows, columns, eps);
        layer_norm_backward_input(stream, x.data(), weight.data(), mean.data(), rstd.data(),
                                  dx.data(), nullptr, dx.data(), rows, columns);
        layer_norm_backward_weight(stream, x.data(), mean.data(), rstd.data(), dy.data(),
                                   dweight.data(), dbias.data(), rows, columns);
        break;
      case Kind::rms:
        rms_norm_forward(stream, x.data(), weight.data(), y.data(), rstd.data(), rows, columns,
                         eps);
        rms_norm_backward_input(stream, x.data(), weight.data(), rstd.data(), dx.data(), nullptr,
                                dx.data(), rows, columns);
        rms_norm_backward_weight(stream, x.data(), rstd.data(), dy.data(), dweight.data(), rows,
                                 columns);
        break;
    }
  }

  Floats x, dy, weight, bias;
  Floats y, dx, dweight, dbias, mean, rstd;
};

Doubles reference(Kind kind, const Doubles& x, const Doubles& weight, const Doubles& bias) {
  const std::size_t columns = weight.size();
  Doubles y;
  for (std::size_t start = 0; start < x.size(); start += columns) {
    double mean = 0, squares = 0;
    if (kind == Kind::layer)
      for (std::size_t c = 0; c < columns; ++c) mean += x[start + c] / static_cast<double>(columns);
    for (std::size_t c = 0; c < columns; ++c)
      squares += (x[start + c] - mean) * (x[start + c] - mean);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(columns) + eps);
    for (std::size_t c = 0; c < columns; ++c)
      y.push_back((x[start + c] - mean) * rstd * weight[c] + (kind == Kind::layer ? bias[c] : 0));
  }
  return y;
}

/// Returns what a kernel added to the previous numbers.
Floats minus(Floats a, const Floats& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

TEST_CASE("norms and their gradients agree with their formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto kind : {Kind::layer, Kind::rms})
    for (const auto& s : sizes) {
      INFO((kind == Kind::layer ? "layer" : "rms") << " of " << s.rows << " x " << s.columns);
      const Norm norm(kind, s, stream);
      const auto x = doubles(norm.x), weight = doubles(norm.weight), bias = doubles(norm.bias);
      CHECK(close(norm.y, reference(kind, x, weight, bias), 4));
      const auto of_x = [&](const Doubles& v) { return reference(kind, v, weight, bias); };
      const auto of_weight = [&](const Doubles& v) { return reference(kind, x, v, bias); };
      const auto of_bias = [&](const Doubles& v) { return reference(kind, x, weight, v); };
      // With one column the true gradient is 0; the result is rounding noise / sqrt(eps).
      if (s.columns > 1) CHECK(close(norm.dx, numerical_gradient(of_x, norm.x, norm.dy), 16));
      CHECK(close(minus(norm.dweight, numbers(s.columns, 5)),
                  numerical_gradient(of_weight, norm.weight, norm.dy), 4));
      if (kind == Kind::layer)
        CHECK(close(minus(norm.dbias, numbers(s.columns, 6)),
                    numerical_gradient(of_bias, norm.bias, norm.dy), 4));
    }
}

TEST_CASE("layer norm stays accurate far from 0", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats ones(4, 1), zeros(4, 0), x{10'000, 10'001, 10'002, 10'003};
  Floats y(4), mean(1), rstd(1);
  layer_norm_forward(stream, x.data(), ones.data(), zeros.data(), y.data(), mean.data(),
                     rstd.data(), 1, 4, 0);
  CHECK(mean[0] == 10'001.5f);
  CHECK(rstd[0] == Approx(1 / std::sqrt(1.25)));
  CHECK(y[0] == Approx(-1.5 / std::sqrt(1.25)));
  CHECK(y[3] == Approx(1.5 / std::sqrt(1.25)));
}

TEST_CASE("norms pass a NaN on to its row and to no other row", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::int64_t columns = 19;
  const Floats ones(columns, 1), zeros(columns, 0);
  auto x = numbers(2 * columns, 1);
  x[18] = std::numeric_limits<float>::quiet_NaN();
  Floats y(x.size()), mean(2), rstd(2);
  const auto spoiled = [&](std::size_t r) {
    std::int64_t count = 0;
    for (std::size_t c = 0; c < columns; ++c) count += std::isnan(y[r * columns + c]);
    return count;
  };
  layer_norm_forward(stream, x.data(), ones.data(), zeros.data(), y.data(), mean.data(),
                     rstd.data(), 2, columns, eps);
  CHECK(spoiled(0) == columns);
  CHECK(spoiled(1) == 0);
  rms_norm_forward(stream, x.data(), ones.data(), y.data(), rstd.data(), 2, columns, eps);
  CHECK(spoiled(0) == columns);
  CHECK(spoiled(1) == 0);
}

TEST_CASE("weight gradients of norms add rows in pieces of 128 and then add the pieces",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  // In float, 1 + 2^30 equals 2^30: small terms survive only if no large one is added to them.
  const std::int64_t rows = 3 * 128;
  Floats dy(rows, 0), x(rows, 1), zeros(rows, 0), ones(rows, 1);
  dy[5] = 0x1p30f;
  dy[128] = 1;          // In a piece of its own.
  dy[2 * 128 + 1] = 2;  // In another piece of its own.
  dy[6] = -0x1p30f;
  dy[7] = 3;
  Floats dweight{10}, dbias{20}, rms{30};
  layer_norm_backward_weight(stream, x.data(), zeros.data(), ones.data(), dy.data(), dweight.data(),
                             dbias.data(), rows, 1);
  rms_norm_backward_weight(stream, x.data(), ones.data(), dy.data(), rms.data(), rows, 1);
  CHECK(dweight[0] == 16);
  CHECK(dbias[0] == 26);
  CHECK(rms[0] == 36);
  // The first piece sums to 2^30, so 1 and 2 are lost.
  dy[6] = 0;
  dweight[0] = 0;
  rms_norm_backward_weight(stream, x.data(), ones.data(), dy.data(), dweight.data(), rows, 1);
  CHECK(dweight[0] == 0x1p30f);
}

TEST_CASE("norms have the same bits with any number of threads and any instruction set",
          "[kernels]") {
  for (const auto kind : {Kind::layer, Kind::rms})
    CHECK(same_bits([&](Stream& stream) {
      const Norm norm(kind, {431, 389}, stream);
      Floats all;
      for (const auto* part : {&norm.y, &norm.dx, &norm.dweight, &norm.dbias, &norm.rstd})
        all.insert(all.end(), part->begin(), part->end());
      return all;
    }));
}

}  // namespace
}  // namespace troupe::kernels
