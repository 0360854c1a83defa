// Attention by intervals, with lengths of queries and keys apart, biases of distances and dropout.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_scores.h"
#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A problem with queries, keys and values each in a tensor of its own.
struct Problem {
  explicit Problem(const AttentionShape& s, std::vector<std::int32_t> spans = {})
      : shape(s),
        span(std::move(spans)),
        q(numbers_up_to(2, s.batch * s.length * q_row(), 1)),
        k(numbers_up_to(2, s.batch * s.key_count() * kv_row(), 2)),
        v(numbers_up_to(2, s.batch * s.key_count() * kv_row(), 3)),
        dout(numbers(s.batch * s.length * q_row(), 4)),
        biases(numbers_up_to(1, s.buckets * s.heads, 5)) {}

  std::int64_t q_row() const { return shape.heads * shape.width; }
  std::int64_t kv_row() const { return shape.kv_heads * shape.width; }
  AttentionData data() const {
    return {.span = span.empty() ? nullptr : span.data(),
            .biases = biases.empty() ? nullptr : biases.data(),
            .key = {.seed = 11, .step = 3, .sample = 5, .operation = 2}};
  }

  struct Made {
    Floats out, logsumexp, dq, dk, dv, dbiases;
    bool operator==(const Made&) const = default;
  };
  Made run(Stream& stream) const {
    Made made{.out = Floats(q.size(), 7),
              .logsumexp = Floats(index(shape.batch * shape.heads * shape.length), 7),
              .dq = Floats(q.size(), 7),
              .dk = Floats(k.size(), 7),
              .dv = Floats(v.size(), 7),
              .dbiases = Floats(biases.size(), 7)};
    attention_forward(stream, shape, {q.data(), q_row()}, {k.data(), kv_row()},
                      {v.data(), kv_row()}, {made.out.data(), q_row()}, made.logsumexp.data(),
                      data());
    attention_backward(stream, shape, {q.data(), q_row()}, {k.data(), kv_row()},
                       {v.data(), kv_row()}, {made.out.data(), q_row()}, made.logsumexp.data(),
                       {dout.data(), q_row()}, {made.dq.data(), q_row()},
                       {made.dk.data(), kv_row()}, {made.dv.data(), kv_row()}, data(),
                       made.dbiases.data());
    return made;
  }

  bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    if (shape.mask == Mask::causal && j > i) return false;
    if (shape.window > 0 && j <= i - shape.window) return false;
    const auto at = index((b * shape.length + i) * 2);
    return span.empty() || (span[at] <= j && j < span[at + 1]);
  }
  /// Returns the factor of dropout on a weight.
  double kept(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (shape.rate == 0) return 1;
    const auto words = dropout_key(data().key, b, h, i).words(static_cast<std::uint32_t>(j / 4));
    return uniform(words[index(j % 4)]) >= shape.rate ? 1 / (1 - double{shape.rate}) : 0;
  }

  /// Computes the formula in double.
  Doubles out_of(const Doubles& of_q, const Doubles& of_k, const Doubles& of_v,
                 const Doubles& of_biases) const {
    Doubles out(of_q.size());
    const auto& s = shape;
    const double scale = s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.width));
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.length; ++i) {
          const auto query = (b * s.length + i) * q_row() + h * s.width;
          const auto key = [&](std::int64_t j) {
            return (b * s.key_count() + j) * kv_row() + h * s.kv_heads / s.heads * s.width;
          };
          Doubles weights(index(s.key_count()));
          double sum = 0;
          for (std::int64_t j = 0; j < s.key_count(); ++j) {
            if (!sees(b, i, j)) continue;
            double score = 0;
            for (std::int64_t c = 0; c < s.width; ++c)
              score += of_q[index(query + c)] * of_k[index(key(j) + c)];
            score *= scale;
            if (s.buckets > 0) score += of_biases[index(bucket_of(s, j - i) * s.heads + h)];
            sum += weights[index(j)] = std::exp(score);
          }
          if (sum == 0) continue;
          for (std::int64_t j = 0; j < s.key_count(); ++j)
            for (std::int64_t c = 0; c < s.width; ++c)
              out[index(query + c)] +=
                  weights[index(j)] / sum * kept(b, h, i, j) * of_v[index(key(j) + c)];
        }
    return out;
  }

  AttentionShape shape;
  std::vector<std::int32_t> span;
  Floats q, k, v, dout, biases;
};

/// Returns spans of different begins and ends. Some are empty, some go beyond all keys.
std::vector<std::int32_t> made_spans(const AttentionShape& s) {
  std::vector<std::int32_t> spans;
  for (std::int64_t i = 0; i < s.batch * s.length; ++i) {
    const auto words = RandomKey{.seed = 9}.words(static_cast<std::uint32_t>(i));
    const auto keys = static_cast<std::uint32_t>(s.key_count());
    const auto first = static_cast<std::int32_t>(words[0] % keys);
    spans.push_back(first - 1);
    spans.push_back(i % 5 == 0 ? first - 1 : first + static_cast<std::int32_t>(words[1] % keys));
  }
  return spans;
}

const AttentionShape two_lengths{
    .batch = 2, .length = 7, .heads = 2, .kv_heads = 2, .width = 4, .mask = Mask::full, .keys = 11};
AttentionShape with_biases(AttentionShape shape) {
  shape.scale = 0.75f;
  shape.buckets = 8;
  shape.distance = 20;
  return shape;
}
AttentionShape with_rate(AttentionShape shape) {
  shape.rate = 0.3f;
  return shape;
}
const AttentionShape causal{.batch = 2, .length = 9, .heads = 4, .kv_heads = 2, .width = 3};
const AttentionShape windowed{
    .batch = 1, .length = 12, .heads = 2, .kv_heads = 1, .width = 3, .window = 5};

void check_formula(const Problem& problem) {
  MemoryPool pool;
  Stream stream(pool);
  const auto made = problem.run(stream);
  const Doubles q = doubles(problem.q), k = doubles(problem.k), v = doubles(problem.v),
                biases = doubles(problem.biases);
  CHECK(close(made.out, problem.out_of(q, k, v, biases), 16));
  const auto gradient = [&](const Floats& of, auto out) {
    return numerical_gradient(out, of, problem.dout);
  };
  CHECK(close(
      made.dq,
      gradient(problem.q, [&](const Doubles& x) { return problem.out_of(x, k, v, biases); }), 64));
  CHECK(close(
      made.dk,
      gradient(problem.k, [&](const Doubles& x) { return problem.out_of(q, x, v, biases); }), 64));
  CHECK(close(
      made.dv,
      gradient(problem.v, [&](const Doubles& x) { return problem.out_of(q, k, x, biases); }), 64));
  if (!biases.empty())
    CHECK(close(
        made.dbiases,
        gradient(problem.biases, [&](const Doubles& x) { return problem.out_of(q, k, v, x); }),
        64));
}

}  // namespace

TEST_CASE("attention with spans, biases and dropout agrees with its formula", "[kernels]") {
  for (const auto& shape :
       {two_lengths, causal, windowed, with_biases(two_lengths), with_biases(causal),
        with_rate(causal), with_rate(with_biases(two_lengths))}) {
    INFO("keys " << shape.key_count() << ", buckets " << shape.buckets);
    check_formula(Problem(shape));
    check_formula(Problem(shape, made_spans(shape)));
  }
}

TEST_CASE("buckets of distances are those of T5", "[kernels]") {
  AttentionShape shape{.mask = Mask::full, .buckets = 32, .distance = 128};
  const auto bucket = [&](std::int64_t distance) { return bucket_of(shape, distance); };
  for (int i = 0; i < 8; ++i) {
    CHECK(bucket(-i) == i);
    CHECK(bucket(i) == (i == 0 ? 0 : 16 + i));
  }
  // The first distance of each bucket, as torch computes 8 + log(d / 8) / log(16) * 8.
  const int firsts[] = {8, 12, 16, 23, 32, 46, 64, 91};
  for (int i = 0; i < 8; ++i) {
    CHECK(bucket(-firsts[i]) == 8 + i);
    CHECK(bucket(-firsts[i] + 1) == 7 + i);
    CHECK(bucket(firsts[i]) == 24 + i);
  }
  CHECK(bucket(-5000) == 15);
  CHECK(bucket(5000) == 31);
  shape.mask = Mask::causal;
  CHECK(bucket(3) == 0);
  CHECK(bucket(-15) == 15);
  CHECK(bucket(-16) == 16);
  CHECK(bucket(-18) == 16);
  CHECK(bucket(-19) == 17);
  CHECK(bucket(-112) == 30);
  CHECK(bucket(-113) == 31);
  CHECK(bucket(-128) == 31);
}

TEST_CASE("a query that sees no key gets zeros and gives no gradient", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto& shape : {two_lengths, with_biases(two_lengths)}) {
    const Problem problem(shape, std::vector<std::int32_t>(index(shape.batch * shape.length * 2)));
    const auto made = problem.run(stream);
    const auto is_zero = [](float number) { return number == 0; };
    for (const auto* zeros : {&made.out, &made.dq, &made.dk, &made.dv, &made.dbiases})
      CHECK(std::ranges::all_of(*zeros, is_zero));
    CHECK(std::ranges::all_of(made.logsumexp, [](float number) {
      return number == -std::numeric_limits<float>::infinity();
    }));
  }
}

TEST_CASE("a span of all keys changes no bit, and padding changes none of the rest", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const bool has_more : {false, true}) {
    AttentionShape shape{.batch = 1,
                         .length = 40,
                         .heads = 2,
                         .kv_heads = 2,
                         .width = 4,
                         .mask = Mask::full,
                         .keys = 530};
    if (has_more) shape = with_rate(with_biases(shape));
    const Problem plain(shape);
    std::vector<std::int32_t> all;
    for (int i = 0; i < 40; ++i) all.insert(all.end(), {0, 530});
    Problem spanned(shape, all);
    const auto wanted = plain.run(stream);
    CHECK(spanned.run(stream) == wanted);
    // Padding: five more queries that see nothing, and more keys that nobody sees.
    spanned.shape.length = 45;
    spanned.shape.keys = 1100;
    spanned.span.resize(90);
    for (auto* rows : {&spanned.q, &spanned.dout}) rows->resize(45 * 8, 3.0f);
    for (auto* rows : {&spanned.k, &spanned.v}) rows->resize(1100 * 8, 5.0f);
    auto padded = spanned.run(stream);
    for (auto* rows : {&padded.out, &padded.dq}) rows->resize(40 * 8);
    for (auto* rows : {&padded.dk, &padded.dv}) {
      CHECK(std::all_of(rows->begin() + 530 * 8, rows->end(), [](float x) { return x == 0; }));
      rows->resize(530 * 8);
    }
    CHECK(padded.out == wanted.out);
    CHECK(padded.dq == wanted.dq);
    CHECK(padded.dk == wanted.dk);
    CHECK(padded.dv == wanted.dv);
    CHECK(padded.dbiases == wanted.dbiases);
  }
}

TEST_CASE("spans, biases and dropout have the same bits with any threads and instructions",
          "[kernels]") {
  AttentionShape shape = with_rate(with_biases(two_lengths));
  shape.length = 300;
  shape.keys = 530;
  shape.heads = shape.kv_heads = 3;
  const Problem problem(shape, made_spans(shape));
  CHECK(same_bits([&](Stream& stream) {
    const auto made = problem.run(stream);
    Floats all = made.out;
    for (const auto* part : {&made.logsumexp, &made.dq, &made.dk, &made.dv, &made.dbiases})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }));
}

}  // namespace troupe::kernels
