// Attention of a text's next positions has the bits of attention over the whole text.

#include "kernels/attention_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

/// Random queries, keys and values of one sequence. The numbers of a position do not depend on the
/// length, and lie apart from those of its neighbours.
struct Text {
  explicit Text(const AttentionShape& s)
      : shape(s),
        q(numbers_up_to(2, s.length * q_row(), 1)),
        kv(numbers_up_to(2, s.length * kv_row(), 2)),
        biases(numbers_up_to(2, s.buckets * s.heads, 3)) {}

  std::int64_t q_row() const { return shape.heads * shape.width + 1; }
  std::int64_t kv_row() const { return 2 * shape.kv_heads * shape.width + 3; }

  /// Returns what attention makes of the last position of the first `length` ones.
  Floats whole(Stream& stream, std::int64_t length) const {
    auto given = shape;
    given.length = length;
    const std::int64_t row = shape.heads * shape.width;
    Floats out(static_cast<std::size_t>(length * row));
    Floats logsumexp(static_cast<std::size_t>(length * shape.heads));
    attention_forward(stream, given, {q.data(), q_row()}, {kv.data(), kv_row()},
                      {kv.data() + shape.kv_heads * shape.width, kv_row()}, {out.data(), row},
                      logsumexp.data(), {.biases = biases.data()});
    return {out.end() - static_cast<std::ptrdiff_t>(row), out.end()};
  }

  Tensor rows(Stream& stream, const Floats& all, std::int64_t row, std::int64_t first,
              std::int64_t count) const {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * row);
    return tensor(stream, Floats(begin, begin + static_cast<std::ptrdiff_t>(count * row)),
                  {1, count, row});
  }

  /// Returns what each position gets, from `read` on, after the cache got those before at once.
  /// `together` positions follow at a time.
  Floats continued(Stream& stream, std::int64_t read, std::int64_t together) const {
    Tensor cache = make_attention_cache(stream, shape, biases.data());
    const auto next = [&](std::int64_t first, std::int64_t count, auto use) {
      const Tensor queries = rows(stream, q, q_row(), first, count);
      const Tensor both = rows(stream, kv, kv_row(), first, count);
      use(queries, HeadsOf{both, 0}, HeadsOf{both, shape.kv_heads * shape.width});
    };
    if (read > 0)
      next(0, read, [&](const Tensor&, HeadsOf k, HeadsOf v) {
        keep_in_cache(stream, shape, 0, k, v, cache);
      });
    Floats all;
    for (std::int64_t first = read; first < shape.length; first += together) {
      const std::int64_t count = std::min(together, shape.length - first);
      next(first, count, [&](const Tensor& queries, HeadsOf k, HeadsOf v) {
        Tensor out = stream.make({1, count, shape.heads * shape.width});
        attend_to_cache(stream, shape, first, {queries}, k, v, {out}, cache);
        all.insert(all.end(), out.f32(), out.f32() + out.count());
      });
    }
    return all;
  }

  AttentionShape shape;
  Floats q, kv, biases;
};

const AttentionShape shapes[] = {
    {.batch = 1, .length = 3, .heads = 1, .kv_heads = 1, .width = 1},
    {.batch = 1, .length = 130, .heads = 3, .kv_heads = 3, .width = 5},
    {.batch = 1, .length = 130, .heads = 4, .kv_heads = 2, .width = 32, .cap = 1.5f},
    {.batch = 1, .length = 70, .heads = 4, .kv_heads = 1, .width = 64, .scale = 0.3f},
    {.batch = 1, .length = 130, .heads = 2, .kv_heads = 1, .width = 20, .window = 1},
    {.batch = 1, .length = 130, .heads = 2, .kv_heads = 1, .width = 20, .window = 37, .cap = 2},
    {.batch = 1,
     .length = 130,
     .heads = 4,
     .kv_heads = 2,
     .width = 8,
     .buckets = 9,
     .distance = 40},
    {.batch = 1,
     .length = 130,
     .heads = 3,
     .kv_heads = 3,
     .width = 16,
     .window = 50,
     .scale = 1,
     .buckets = 32,
     .distance = 128},
};

}  // namespace

TEST_CASE("attention to a cache has the bits of attention over the whole text", "[kernels]") {
  for (const auto& shape : shapes) {
    INFO("length " << shape.length << ", width " << shape.width << ", window " << shape.window);
    const Text text(shape);
    MemoryPool pool;
    Stream stream(pool);
    Floats wanted;
    for (std::int64_t length = 1; length <= shape.length; ++length) {
      const Floats last = text.whole(stream, length);
      wanted.insert(wanted.end(), last.begin(), last.end());
    }
    const std::int64_t row = shape.heads * shape.width;
    for (const std::int64_t read : {0, 1, 2, 31, 32, 33, 63, 64, 65, 128})
      for (const std::int64_t together : {1, 3, 40})
        if (read < shape.length) {
          INFO("read " << read << ", then " << together << " at a time");
          const Floats rest(wanted.begin() + static_cast<std::ptrdiff_t>(read * row), wanted.end());
          CHECK((text.continued(stream, read, together) == rest));
        }
    CHECK(same_bits([&](Stream& any) { return text.continued(any, 1, 1); }));
  }
}

TEST_CASE("a cache of a window keeps the positions that are seen", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  for (const std::int64_t window : {0, 1, 31, 511, 512, 513, 700, 1599, 1600, 1601}) {
    INFO("window " << window);
    const Text text(
        {.batch = 1, .length = 1600, .heads = 2, .kv_heads = 1, .width = 16, .window = window});
    const Tensor cache = make_attention_cache(stream, text.shape);
    // Keys, and values in rows of at least 32 numbers.
    if (window > 0) CHECK(cache.count() <= (window + 511) / 512 * 512 * (16 + 32));
    CHECK(cache.count() <= 1600 * (16 + 32));
    const Floats all = text.continued(stream, 1, 1);
    for (const std::int64_t length : {2, 511, 512, 513, 514, 1024, 1025, 1100, 1212, 1537, 1600}) {
      INFO("length " << length);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>((length - 2) * 32);
      CHECK((Floats(begin, begin + 32) == text.whole(stream, length)));
    }
    // A prompt may be longer than the window.
    const Floats later = text.continued(stream, 1300, 7);
    CHECK((later == Floats(all.begin() + 1299 * 32, all.end())));
  }
}

TEST_CASE("attention to a cache sees a wrong window, a lost key and a wrong head", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const AttentionShape shape{
      .batch = 1, .length = 70, .heads = 2, .kv_heads = 2, .width = 8, .window = 40};
  const Text text(shape);
  const Floats wanted = text.continued(stream, 60, 1);
  AttentionShape with_biases = shape;
  with_biases.buckets = 8;
  with_biases.distance = 30;
  Text wider = text, lost = text, swapped = text;
  Text biased(with_biases), other_distance = biased;
  other_distance.shape.distance = 60;
  wider.shape.window = 41;
  lost.kv[static_cast<std::size_t>(45 * text.kv_row())] += 1e-3f;
  swapped.shape.kv_heads = 1;
  CHECK((wider.continued(stream, 60, 1) != wanted));
  CHECK((lost.continued(stream, 60, 1) != wanted));
  CHECK((swapped.continued(stream, 60, 1) != wanted));
  CHECK((biased.continued(stream, 60, 1) != wanted));
  CHECK((other_distance.continued(stream, 60, 1) != biased.continued(stream, 60, 1)));
}

TEST_CASE("attention to a sequence in a cache has the bits of attention without one", "[kernels]") {
  constexpr std::int64_t rows = 40;
  const AttentionShape all[] = {
      {.heads = 1, .kv_heads = 1, .width = 1, .keys = 1},
      {.heads = 4, .kv_heads = 2, .width = 20, .cap = 1.5f, .keys = 70},
      {.heads = 3, .kv_heads = 3, .width = 32, .scale = 1, .keys = 700},
      {.heads = 2, .kv_heads = 1, .width = 64, .keys = 1100},
  };
  for (AttentionShape shape : all) {
    INFO(shape.keys << " keys of width " << shape.width);
    shape.batch = 1;
    shape.length = rows;
    shape.mask = Mask::full;
    const std::int64_t q_row = shape.heads * shape.width, kv_row = 2 * shape.kv_heads * shape.width;
    const std::int64_t first_value = shape.kv_heads * shape.width;
    // Some rows see the end of the keys, some a part, and some nothing.
    std::vector<std::int32_t> spans;
    for (std::int64_t i = 0; i < rows; ++i) {
      spans.push_back(static_cast<std::int32_t>(i * 29 % shape.keys));
      spans.push_back(static_cast<std::int32_t>(i % 7 == 0 ? spans.back()
                                                : i % 2 == 0
                                                    ? shape.keys
                                                    : (spans.back() + i * 16) % shape.keys));
    }
    const auto attended = [&](Stream& stream, const std::int32_t* span, bool is_cached) {
      const Tensor q = tensor(stream, numbers_up_to(2, rows * q_row, 1), {1, rows, q_row});
      const Tensor kv =
          tensor(stream, numbers_up_to(2, shape.keys * kv_row, 2), {1, shape.keys, kv_row});
      Tensor out = stream.make({1, rows, q_row}), logsumexp = stream.make({1, shape.heads, rows});
      if (is_cached) {
        Tensor cache = make_attention_cache(stream, shape);
        keep_in_cache(stream, shape, 0, {kv, 0}, {kv, first_value}, cache);
        attend_to_sequence(stream, shape, {q}, span, {out}, cache);
      } else {
        attend(stream, shape, {q}, {kv, 0}, {kv, first_value}, {out}, logsumexp, {.span = span});
      }
      return Floats(out.f32(), out.f32() + out.count());
    };
    MemoryPool pool;
    Stream stream(pool, 2);
    for (const std::int32_t* span : {std::as_const(spans).data(), (const std::int32_t*)nullptr})
      CHECK((attended(stream, span, true) == attended(stream, span, false)));
    if (shape.keys > 1)
      CHECK((attended(stream, spans.data(), true) != attended(stream, nullptr, true)));
    CHECK(same_bits([&](Stream& any) { return attended(any, spans.data(), true); }));
  }
}

}  // namespace troupe::kernels
