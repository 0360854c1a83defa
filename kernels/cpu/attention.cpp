#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/product.h"

namespace troupe::kernels {
namespace {

using cpu::Matrix;
using cpu::Order;
using cpu::Panels;
using cpu::Product;

// Queries are taken in blocks, so that a causal mask leaves little to compute in vain, and keys in
// blocks, so that the scores of the two stay in the second cache.
constexpr std::int64_t query_block = 64;
constexpr std::int64_t key_block = 512;

/// One head of one sequence: rows are positions.
template <class Heads>
struct Head {
  decltype(Heads::data) data;
  std::int64_t row;

  Head(const AttentionShape& shape, const Heads& heads, std::int64_t batch, std::int64_t head)
      : data(heads.data + batch * shape.length * heads.row + head * shape.width), row(heads.row) {}

  decltype(Heads::data) at(std::int64_t position) const { return data + position * row; }
  Matrix<float> by_row(std::int64_t position) const { return {at(position), row, Order::by_row}; }
  Matrix<float> by_column(std::int64_t position) const {
    return {at(position), row, Order::by_column};
  }
};
using HeadIn = Head<HeadsIn>;
using HeadOut = Head<HeadsOut>;

/// Some positions of a head.
struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t size() const { return end - begin; }
};

/// Calls body for consecutive ranges of at most `most` that make up `all`.
template <class Body>
void for_ranges(const Range& all, std::int64_t most, Body body) {
  for (std::int64_t begin = all.begin; begin < all.end; begin += most)
    body(Range{begin, std::min(begin + most, all.end)});
}

/// Memory that a thread needs for one head, handed out piece by piece, each at a cache line.
class Scratch {
 public:
  Scratch(Stream& stream, std::int64_t floats)
      : block_(stream.memory().take(static_cast<std::size_t>(floats) * sizeof(float))),
        next_(reinterpret_cast<float*>(block_.get()->memory)) {}

  static constexpr std::int64_t line(std::int64_t floats) { return (floats + 15) / 16 * 16; }

  float* take(std::int64_t floats) {
    float* piece = next_;
    next_ += line(floats);
    return piece;
  }

 private:
  BlockHandle block_;
  float* next_;
};

/// A packed second factor that is filled again and again.
struct Pack {
  float* data;
  std::int64_t stride;

  static std::int64_t floats(std::int64_t depth, std::int64_t columns) {
    return cpu::panel_count(columns) * cpu::panel_columns * depth;
  }
  Pack(Scratch& scratch, std::int64_t depth, std::int64_t columns)
      : data(scratch.take(floats(depth, columns))), stride(depth * cpu::panel_columns) {}

  void fill(const Matrix<float>& matrix, std::int64_t depth, std::int64_t columns) const {
    cpu::pack_panels(matrix, depth, columns, data, stride);
  }
  Panels<float> all() const { return {data, stride}; }
  /// From some depth on; or from a column on, which begins a panel.
  Panels<float> from_depth(std::int64_t depth) const {
    return {data + depth * cpu::panel_columns, stride};
  }
  Panels<float> from_column(std::int64_t column) const {
    return {data + column / cpu::panel_columns * stride, stride};
  }
};
static_assert(key_block % cpu::panel_columns == 0);

float scale_of(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.width));
}

/// The keys that any of these queries sees.
Range seen_by(const AttentionShape& shape, const Range& queries) {
  switch (shape.mask) {
    case Mask::full:
      return {0, shape.length};
    case Mask::causal:
      return {0, queries.end};
  }
  return {};
}

cpu::ScoreBlock score_block(const AttentionShape& shape, float* scores, const Range& queries,
                            const Range& keys) {
  cpu::ScoreBlock block{
      .scores = scores, .stride = key_block, .rows = queries.size(), .columns = keys.size()};
  switch (shape.mask) {
    case Mask::full:
      block.seen_by_first = keys.size();
      break;
    case Mask::causal:
      block.seen_by_first = queries.begin + 1 - keys.begin;
      block.more_for_each_next = 1;
      break;
  }
  return block;
}

/// scores = the rows of `queries` times packed columns, one for each key.
void score(const HeadIn& rows, const Range& queries, const Pack& columns, const Range& keys,
           std::int64_t width, float* scores) {
  multiply(Product<float>{.rows = queries.size(),
                          .columns = keys.size(),
                          .depth = width,
                          .a = rows.by_row(queries.begin),
                          .c = scores,
                          .c_stride = key_block},
           columns.from_column(keys.begin));
}

/// c += the first factor times packed rows.
void add_product(const Matrix<float>& a, std::int64_t rows, std::int64_t depth,
                 const Panels<float>& b, std::int64_t columns, float* c, std::int64_t c_stride) {
  multiply(Product<float>{.rows = rows,
                          .columns = columns,
                          .depth = depth,
                          .a = a,
                          .start = c,
                          .start_stride = c_stride,
                          .c = c,
                          .c_stride = c_stride},
           b);
}

void clear(const HeadOut& head, const Range& positions, std::int64_t width) {
  for (std::int64_t i = positions.begin; i < positions.end; ++i)
    std::fill_n(head.at(i), width, 0.0f);
}

void forward_head(Stream& stream, const AttentionShape& shape, const HeadIn& q, const HeadIn& k,
                  const HeadIn& v, const HeadOut& out, float* logsumexp) {
  const auto [length, width] = std::pair(shape.length, shape.width);
  Scratch scratch(
      stream, Pack::floats(width, length) + Pack::floats(length, width) + query_block * key_block);
  const Pack keys_packed(scratch, width, length), values_packed(scratch, length, width);
  float* scores = scratch.take(query_block * key_block);
  keys_packed.fill(k.by_column(0), width, length);
  values_packed.fill(v.by_row(0), length, width);
  for_ranges({0, length}, query_block, [&](const Range& queries) {
    std::array<cpu::RunningSoftmax, query_block> running;
    const cpu::OutputRows rows{out.at(queries.begin), out.row, width};
    clear(out, queries, width);
    for_ranges(seen_by(shape, queries), key_block, [&](const Range& keys) {
      score(q, queries, keys_packed, keys, width, scores);
      cpu::soften_scores(score_block(shape, scores, queries, keys), scale_of(shape), running.data(),
                         rows);
      add_product({scores, key_block, Order::by_row}, queries.size(), keys.size(),
                  values_packed.from_depth(keys.begin), width, rows.data, out.row);
    });
    cpu::finish_softmax(running.data(), queries.size(), rows, logsumexp + queries.begin);
  });
}

/// What one head of keys and values has packed for all heads of queries that read it.
struct BackwardPacks {
  Pack keys, transposed_keys, transposed_values, queries, dout;

  static std::int64_t floats(const AttentionShape& shape) {
    return 2 * Pack::floats(shape.width, shape.length) + Pack::floats(shape.length, shape.width) +
           2 * Pack::floats(query_block, shape.width);
  }
  BackwardPacks(Scratch& scratch, const AttentionShape& shape)
      : keys(scratch, shape.length, shape.width),
        transposed_keys(scratch, shape.width, shape.length),
        transposed_values(scratch, shape.width, shape.length),
        queries(scratch, query_block, shape.width),
        dout(scratch, query_block, shape.width) {}
};

}  // namespace

void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp) {
  stream.for_each(shape.batch * shape.heads, [&](std::int64_t i) {
    const std::int64_t batch = i / shape.heads, head = i % shape.heads;
    const std::int64_t kv_head = head * shape.kv_heads / shape.heads;
    forward_head(stream, shape, HeadIn(shape, q, batch, head), HeadIn(shape, k, batch, kv_head),
                 HeadIn(shape, v, batch, kv_head), HeadOut(shape, out, batch, head),
                 logsumexp + i * shape.length);
  });
}

void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv) {
  const auto [length, width] = std::pair(shape.length, shape.width);
  constexpr std::int64_t block_floats = query_block * key_block;
  stream.for_each(shape.batch * shape.kv_heads, [&](std::int64_t i) {
    const std::int64_t batch = i / shape.kv_heads, kv_head = i % shape.kv_heads;
    const HeadIn key(shape, k, batch, kv_head), value(shape, v, batch, kv_head);
    const HeadOut dkey(shape, dk, batch, kv_head), dvalue(shape, dv, batch, kv_head);
    Scratch scratch(stream, BackwardPacks::floats(shape) + 2 * block_floats);
    const BackwardPacks packs(scratch, shape);
    float* p = scratch.take(block_floats);
    float* dp = scratch.take(block_floats);
    packs.keys.fill(key.by_row(0), length, width);
    packs.transposed_keys.fill(key.by_column(0), width, length);
    packs.transposed_values.fill(value.by_column(0), width, length);
    clear(dkey, {0, length}, width);
    clear(dvalue, {0, length}, width);
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      if (head * shape.kv_heads / shape.heads != kv_head) continue;
      const HeadIn query(shape, q, batch, head), output(shape, out, batch, head),
          doutput(shape, dout, batch, head);
      const HeadOut dquery(shape, dq, batch, head);
      const float* sums = logsumexp + (batch * shape.heads + head) * length;
      for_ranges({0, length}, query_block, [&](const Range& queries) {
        std::array<float, query_block> dot;
        for (std::int64_t r = 0; r < queries.size(); ++r)
          dot[static_cast<std::size_t>(r)] =
              cpu::dot_product(output.at(queries.begin + r), doutput.at(queries.begin + r), width);
        packs.queries.fill(query.by_row(queries.begin), queries.size(), width);
        packs.dout.fill(doutput.by_row(queries.begin), queries.size(), width);
        clear(dquery, queries, width);
        for_ranges(seen_by(shape, queries), key_block, [&](const Range& keys) {
          score(query, queries, packs.transposed_keys, keys, width, p);
          score(doutput, queries, packs.transposed_values, keys, width, dp);
          cpu::soften_gradient(score_block(shape, p, queries, keys),
                               {sums + queries.begin, dot.data(), scale_of(shape)}, dp);
          add_product({dp, key_block, Order::by_row}, queries.size(), keys.size(),
                      packs.keys.from_depth(keys.begin), width, dquery.at(queries.begin),
                      dquery.row);
          add_product({dp, key_block, Order::by_column}, keys.size(), queries.size(),
                      packs.queries.all(), width, dkey.at(keys.begin), dkey.row);
          add_product({p, key_block, Order::by_column}, keys.size(), queries.size(),
                      packs.dout.all(), width, dvalue.at(keys.begin), dvalue.row);
        });
      });
    }
  });
}

}  // namespace troupe::kernels
