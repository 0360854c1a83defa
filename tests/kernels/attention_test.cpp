#include "kernels/attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Attention with keys and values in one tensor (as fused projections make them) and queries apart.
struct Attention {
  explicit Attention(const AttentionShape& s)
      : shape(s),
        q(numbers_up_to(2, s.batch * s.length * q_row(), 1)),
        kv(numbers_up_to(2, s.batch * s.length * kv_row(), 2)),
        dout(numbers(s.batch * s.length * q_row(), 3)) {}

  std::int64_t q_row() const { return shape.heads * shape.width; }
  std::int64_t kv_row() const { return 2 * shape.kv_heads * shape.width + 3; }

  /// Returns out, logsumexp, dq and dkv in sequence.
  Floats run(Stream& stream) const {
    Floats out(q.size()), logsumexp(size(shape.batch * shape.heads * shape.length));
    Floats dq(q.size(), 7), dkv(kv.size(), 7);
    const HeadsIn queries{q.data(), q_row()}, keys{kv.data(), kv_row()};
    const HeadsIn values{kv.data() + shape.kv_heads * shape.width, kv_row()};
    attention_forward(stream, shape, queries, keys, values, {out.data(), q_row()},
                      logsumexp.data());
    attention_backward(stream, shape, queries, keys, values, {out.data(), q_row()},
                       logsumexp.data(), {dout.data(), q_row()}, {dq.data(), q_row()},
                       {dkv.data(), kv_row()},
                       {dkv.data() + shape.kv_heads * shape.width, kv_row()});
    Floats all = out;
    for (const auto* part : {&logsumexp, &dq, &dkv})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }

  AttentionShape shape;
  Floats q, kv, dout;
};

/// Computes the formula in double: the outputs, then the logarithms of the sums.
Doubles reference(const AttentionShape& s, const Doubles& q, const Doubles& kv) {
  const std::int64_t q_row = s.heads * s.width, kv_row = 2 * s.kv_heads * s.width + 3;
  Doubles out(q.size()), sums;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.length; ++i) {
        const std::int64_t query = (b * s.length + i) * q_row + h * s.width;
        const auto key = [&](std::int64_t j) {
          return (b * s.length + j) * kv_row + h * s.kv_heads / s.heads * s.width;
        };
        const std::int64_t seen = s.mask == Mask::causal ? i + 1 : s.length;
        const std::int64_t first = s.window > 0 ? std::max<std::int64_t>(0, seen - s.window) : 0;
        const double scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.width));
        Doubles weights(size(first));
        double sum = 0;
        for (std::int64_t j = first; j < seen; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < s.width; ++c)
            score += q[size(query + c)] * kv[size(key(j) + c)];
          score *= scale;
          if (s.cap != 0) score = s.cap * std::tanh(score / s.cap);
          weights.push_back(std::exp(score));
          sum += weights.back();
        }
        for (std::int64_t j = first; j < seen; ++j)
          for (std::int64_t c = 0; c < s.width; ++c)
            out[size(query + c)] +=
                weights[size(j)] / sum * kv[size(key(j) + s.kv_heads * s.width + c)];
        sums.push_back(std::log(sum));
      }
  out.insert(out.end(), sums.begin(), sums.end());
  return out;
}

Floats part(const Floats& all, std::size_t first, std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

const AttentionShape shapes[] = {
    {.batch = 1, .length = 1, .heads = 1, .kv_heads = 1, .width = 1, .mask = Mask::causal},
    {.batch = 2, .length = 7, .heads = 3, .kv_heads = 3, .width = 5, .mask = Mask::causal},
    {.batch = 1, .length = 9, .heads = 4, .kv_heads = 2, .width = 8, .mask = Mask::full},
    {.batch = 1, .length = 11, .heads = 3, .kv_heads = 1, .width = 3, .mask = Mask::causal},
    {.batch = 1, .length = 11, .heads = 2, .kv_heads = 1, .width = 3, .window = 4},
    {.batch = 2, .length = 5, .heads = 2, .kv_heads = 2, .width = 4, .window = 1},
    {.batch = 1, .length = 9, .heads = 2, .kv_heads = 2, .width = 4, .scale = 0.3f},
    {.batch = 1, .length = 9, .heads = 2, .kv_heads = 1, .width = 4, .cap = 1.5f},
    {.batch = 1,
     .length = 12,
     .heads = 2,
     .kv_heads = 2,
     .width = 4,
     .window = 5,
     .scale = 0.9f,
     .cap = 2.5f},
};

}  // namespace

TEST_CASE("attention agrees with its formula, and its gradients with finite differences",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto& shape : shapes) {
    const Attention attention(shape);
    INFO("length " << shape.length << ", width " << shape.width);
    const Floats all = attention.run(stream);
    const std::size_t outputs = attention.q.size(),
                      sums = size(shape.batch * shape.heads * shape.length);
    const Doubles q = doubles(attention.q), kv = doubles(attention.kv);
    CHECK(close(part(all, 0, outputs + sums), reference(shape, q, kv), 16));
    const auto of_q = [&](const Doubles& x) { return reference(shape, x, kv); };
    const auto of_kv = [&](const Doubles& x) { return reference(shape, q, x); };
    CHECK(close(part(all, outputs + sums, outputs),
                numerical_gradient(of_q, attention.q, attention.dout), 64));
    // The kernel must not touch the gap between the heads of neighbouring positions.
    auto dkv = numerical_gradient(of_kv, attention.kv, attention.dout);
    for (std::size_t i = 0; i < dkv.size(); ++i) {
      const auto row = size(attention.kv_row());
      if (i % row >= row - 3) dkv[i] = 7;
    }
    CHECK(close(part(all, outputs + sums + outputs, dkv.size()), dkv, 64));
  }
}

TEST_CASE("attention over many blocks of queries and keys agrees with its formula", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  for (const auto mask : {Mask::causal, Mask::full}) {
    const AttentionShape shape{
        .batch = 1, .length = 1100, .heads = 2, .kv_heads = 1, .width = 16, .mask = mask};
    const Attention attention(shape);
    const auto wanted = reference(shape, doubles(attention.q), doubles(attention.kv));
    CHECK(close(part(attention.run(stream), 0, wanted.size()), wanted, 64));
  }
  for (const std::int64_t window : {1, 31, 512, 513, 700, 1099}) {
    const AttentionShape shape{
        .batch = 1, .length = 1100, .heads = 2, .kv_heads = 1, .width = 16, .window = window};
    INFO("window " << window);
    const Attention attention(shape);
    const auto wanted = reference(shape, doubles(attention.q), doubles(attention.kv));
    CHECK(close(part(attention.run(stream), 0, wanted.size()), wanted, 64));
  }
}

TEST_CASE("a window that holds all positions changes no bit of attention", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  AttentionShape shape{.batch = 1, .length = 600, .heads = 2, .kv_heads = 1, .width = 4};
  const Floats whole = Attention(shape).run(stream);
  shape.window = 600;
  CHECK(Attention(shape).run(stream) == whole);
  shape.window = 599;
  CHECK(Attention(shape).run(stream) != whole);
}

TEST_CASE("gradients of attention over many blocks agree with the slope along them", "[kernels]") {
  // The slope of the weighted sum of the outputs along the gradient is the squared gradient norm.
  MemoryPool pool;
  Stream stream(pool);
  const auto [window, cap] = GENERATE(std::pair{0, 0.0f}, std::pair{70, 0.0f}, std::pair{70, 2.0f});
  const AttentionShape shape{.batch = 1,
                             .length = 600,
                             .heads = 2,
                             .kv_heads = 1,
                             .width = 4,
                             .window = window,
                             .cap = cap};
  const Attention attention(shape);
  const std::size_t before = attention.q.size() + size(shape.heads * shape.length);
  const Floats all = attention.run(stream);
  const Floats dq = part(all, before, attention.q.size());
  const Floats dkv = part(all, before + attention.q.size(), attention.kv.size());
  const auto weighted = [&](double step) {
    Doubles q = doubles(attention.q), kv = doubles(attention.kv);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] += step * dq[i];
    for (std::size_t i = 0; i < kv.size(); ++i)
      if (dkv[i] != 7) kv[i] += step * dkv[i];
    const Doubles out = reference(shape, q, kv);
    double sum = 0;
    for (std::size_t i = 0; i < attention.dout.size(); ++i) sum += out[i] * attention.dout[i];
    return sum;
  };
  double squares = 0;
  for (const float g : dq) squares += double{g} * g;
  for (const float g : dkv) squares += g == 7 ? 0 : double{g} * g;
  constexpr double h = 1e-5;
  CHECK((weighted(h) - weighted(-h)) / (2 * h) == Approx(squares).epsilon(1e-4));
}

TEST_CASE("large scores do not overflow attention", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const AttentionShape shape{
      .batch = 1, .length = 2, .heads = 1, .kv_heads = 1, .width = 1, .mask = Mask::full};
  const Floats q = {1000, -1000}, k = {1000, -1000}, v = {3, 5};
  Floats out(2), sums(2);
  attention_forward(stream, shape, {q.data(), 1}, {k.data(), 1}, {v.data(), 1}, {out.data(), 1},
                    sums.data());
  CHECK(out == Floats{3, 5});
  CHECK(sums == Floats{1e6, 1e6});
}

TEST_CASE("a NaN in a query reaches only the output of that query", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const AttentionShape shape{
      .batch = 1, .length = 2, .heads = 1, .kv_heads = 1, .width = 1, .mask = Mask::causal};
  const Floats q = {1, std::numeric_limits<float>::quiet_NaN()}, k = {1, 2}, v = {3, 5};
  Floats out(2), sums(2);
  attention_forward(stream, shape, {q.data(), 1}, {k.data(), 1}, {v.data(), 1}, {out.data(), 1},
                    sums.data());
  CHECK(out[0] == 3);
  CHECK(std::isnan(out[1]));
}

TEST_CASE("attention has the same bits with any number of threads and any instruction set",
          "[kernels]") {
  for (const auto& [length, mask] : {std::pair{130, Mask::causal}, {70, Mask::full}}) {
    const Attention attention(
        {.batch = 2, .length = length, .heads = 4, .kv_heads = 2, .width = 20, .mask = mask});
    CHECK(same_bits([&](Stream& stream) { return attention.run(stream); }));
  }
  const Attention limited({.batch = 2,
                           .length = 130,
                           .heads = 4,
                           .kv_heads = 2,
                           .width = 20,
                           .window = 37,
                           .cap = 1.5f});
  CHECK(same_bits([&](Stream& stream) { return limited.run(stream); }));
}

}  // namespace troupe::kernels
