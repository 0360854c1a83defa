#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/cpu/attention_data.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/parts/product.h"
#include "kernels/cpu/parts/scratch.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

using cpu::DataOfHeads;
using cpu::DiagonalSums;
using cpu::HeadData;
using cpu::key_block;
using cpu::kv_head_of;
using cpu::Matrix;
using cpu::Order;
using cpu::Panels;
using cpu::Product;
using cpu::query_block;
using cpu::Range;
using cpu::scale_of;
using cpu::Scratch;

/// One head of one sequence, with a row for each position.
template <class Layout>
struct Head {
  decltype(Layout::data) data;
  std::int64_t row;

  /// `positions` is the number of them in each sample.
  Head(const Layout& heads, std::int64_t positions, std::int64_t width, std::int64_t batch,
       std::int64_t head)
      : data(heads.data + batch * positions * heads.row + head * width), row(heads.row) {}

  decltype(Layout::data) at(std::int64_t position) const { return data + position * row; }
  Matrix<float> by_row(std::int64_t position) const { return {at(position), row, Order::by_row}; }
  Matrix<float> by_column(std::int64_t position) const {
    return {at(position), row, Order::by_column};
  }
};
using HeadIn = Head<HeadsIn>;
using HeadOut = Head<HeadsOut>;

/// Calls body(range) for consecutive ranges of at most `most` positions that cover `all`.
template <class Body>
void for_ranges(const Range& all, std::int64_t most, Body body) {
  for (std::int64_t begin = all.begin; begin < all.end; begin += most)
    body(Range{begin, std::min(begin + most, all.end)});
}

/// A second factor that is filled again and again, packed or in its stored layout.
class Pack {
 public:
  static std::int64_t floats(std::int64_t depth, std::int64_t columns) {
    return cpu::panel_count(columns) * cpu::panel_columns * depth;
  }
  Pack(Scratch& scratch, std::int64_t depth, std::int64_t columns)
      : room_(scratch.take(floats(depth, columns))), stride_(depth * cpu::panel_columns) {}

  void fill(const Matrix<float>& matrix, std::int64_t depth, std::int64_t columns) {
    if (const auto there = cpu::as_panels(matrix, columns)) {
      panels_ = *there;
      return;
    }
    cpu::pack_panels(matrix, depth, columns, room_, stride_);
    panels_ = {room_, stride_};
  }
  const Panels<float>& all() const { return panels_; }
  /// Return the panels from some depth on, or from a column on that begins a panel.
  Panels<float> from_depth(std::int64_t depth) const {
    return {panels_.data + depth * panels_.step, panels_.stride, panels_.step};
  }
  Panels<float> from_column(std::int64_t column) const {
    return {panels_.data + column / cpu::panel_columns * panels_.stride, panels_.stride,
            panels_.step};
  }

 private:
  float* room_;
  std::int64_t stride_;
  Panels<float> panels_;
};
static_assert(key_block % cpu::panel_columns == 0);

/// Returns the keys that at least one of these queries sees, and those between them. They begin
/// with a block of keys, so that a window or a span changes no bit of a sum.
Range seen_by(const AttentionShape& shape, const HeadData& data, const Range& queries) {
  Range seen{0, shape.key_count()};
  if (shape.mask == Mask::causal) {
    if (shape.window > 0) seen.begin = queries.begin + 1 - shape.window;
    seen.end = queries.end;
  }
  if (data.span) {
    Range spanned{seen.end, 0};
    for (std::int64_t query = queries.begin; query < queries.end; ++query) {
      const auto* const span = data.span_of(query);
      if (span[0] >= span[1]) continue;
      spanned = {std::min<std::int64_t>(spanned.begin, span[0]),
                 std::max<std::int64_t>(spanned.end, span[1])};
    }
    seen = {std::max(seen.begin, spanned.begin), std::min(seen.end, spanned.end)};
  }
  seen.begin = std::max<std::int64_t>(seen.begin, 0) / key_block * key_block;
  return seen;
}

cpu::ScoreBlock score_block(const AttentionShape& shape, const HeadData& data, float* scores,
                            const Range& queries, const Range& keys) {
  cpu::ScoreBlock block{.scores = scores,
                        .stride = key_block,
                        .rows = queries.size(),
                        .columns = keys.size(),
                        .spans = data.span_of(queries.begin),
                        .first_key = keys.begin};
  switch (shape.mask) {
    case Mask::full:
      block.seen_by_first = keys.size();
      break;
    case Mask::causal:
      block.seen_by_first = queries.begin + 1 - keys.begin;
      block.more_for_each_next = 1;
      if (shape.window > 0) block.passed_by_first = block.seen_by_first - shape.window;
      break;
  }
  return block;
}

/// scores = the rows of `queries` times packed columns, with one column for each key.
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

/// Describes the product of `a` and packed rows, written to the rows of `c` at `positions`.
Product<float> product_of(const Matrix<float>& a, std::int64_t depth, const HeadOut& c,
                          const Range& positions, std::int64_t width) {
  return {.rows = positions.size(),
          .columns = width,
          .depth = depth,
          .a = a,
          .c = c.at(positions.begin),
          .c_stride = c.row};
}

/// Returns a product that adds to c instead of overwriting it.
Product<float> added(Product<float> product) {
  product.start = product.c;
  product.start_stride = product.c_stride;
  return product;
}

void clear(const HeadOut& head, std::int64_t length, std::int64_t width) {
  for (std::int64_t i = 0; i < length; ++i) std::fill_n(head.at(i), width, 0.0f);
}

void forward_head(Stream& stream, const AttentionShape& shape, const HeadData& data,
                  const HeadIn& q, const HeadIn& k, const HeadIn& v, const HeadOut& out,
                  float* logsumexp) {
  const auto key_count = shape.key_count(), width = shape.width;
  Scratch scratch(stream, Pack::floats(width, key_count) + Pack::floats(key_count, width) +
                              query_block * key_block);
  Pack transposed_keys(scratch, width, key_count), values(scratch, key_count, width);
  float* scores = scratch.take(query_block * key_block);
  transposed_keys.fill(k.by_column(0), width, key_count);
  values.fill(v.by_row(0), key_count, width);
  for_ranges({0, shape.length}, query_block, [&](const Range& queries) {
    std::array<cpu::RunningSoftmax, query_block> running;
    const cpu::OutputRows rows{out.at(queries.begin), out.row, width};
    const Range seen = seen_by(shape, data, queries);
    for_ranges(seen, key_block, [&](const Range& keys) {
      score(q, queries, transposed_keys, keys, width, scores);
      cpu::soften_scores(
          score_block(shape, data, scores, queries, keys),
          {scale_of(shape), shape.cap, data.biases_of(shape, queries.begin, keys.begin)},
          running.data(), rows);
      data.drop(scores, queries, keys);
      const auto weighted =
          product_of({scores, key_block, Order::by_row}, keys.size(), out, queries, width);
      multiply(keys.begin == seen.begin ? weighted : added(weighted),
               values.from_depth(keys.begin));
    });
    cpu::finish_softmax(running.data(), queries.size(), rows, logsumexp + queries.begin);
  });
}

/// The inputs and outputs of the backward pass for one head of queries.
struct QueryGradient {
  HeadData data;
  HeadIn q, out, dout;
  const float* logsumexp;
  HeadOut dq;
  float* dbiases;  // [buckets, heads] of the sample, from the head's first on; null: no biases.
};

/// The gradients of one head of keys and values. The heads of queries that read it add to them one
/// after another, each with its queries in order.
class KeyValueGradient {
 public:
  KeyValueGradient(Stream& stream, const AttentionShape& shape, const HeadIn& k, const HeadIn& v,
                   const HeadOut& dk, const HeadOut& dv)
      : shape_(shape),
        dk_(dk),
        dv_(dv),
        scratch_(stream, floats(shape)),
        keys_(scratch_, shape.key_count(), shape.width),
        transposed_keys_(scratch_, shape.width, shape.key_count()),
        transposed_values_(scratch_, shape.width, shape.key_count()),
        queries_(scratch_, query_block, shape.width),
        dout_(scratch_, query_block, shape.width),
        p_(scratch_.take(query_block * key_block)),
        ds_(scratch_.take(query_block * key_block)),
        diagonals_(scratch_.take(2 * diagonals_of(shape))) {
    keys_.fill(k.by_row(0), shape.key_count(), shape.width);
    transposed_keys_.fill(k.by_column(0), shape.width, shape.key_count());
    transposed_values_.fill(v.by_column(0), shape.width, shape.key_count());
    clear(dk, shape.key_count(), shape.width);
    clear(dv, shape.key_count(), shape.width);
  }

  void add(const QueryGradient& head) {
    std::optional<DiagonalSums> sums;
    if (head.dbiases) sums.emplace(shape_, diagonals_, diagonals_ + diagonals_of(shape_));
    for_ranges({0, shape_.length}, query_block,
               [&](const Range& queries) { add_queries(head, queries, sums); });
    if (sums) sums->to_buckets(head.dbiases, shape_.heads);
  }

 private:
  static std::int64_t diagonals_of(const AttentionShape& shape) {
    return shape.buckets > 0 ? Scratch::lines(shape.diagonals()) : 0;
  }
  static std::int64_t floats(const AttentionShape& shape) {
    const auto keys = shape.key_count();
    return 2 * Pack::floats(shape.width, keys) + Pack::floats(keys, shape.width) +
           2 * Pack::floats(query_block, shape.width) + 2 * query_block * key_block +
           2 * diagonals_of(shape);
  }

  // With s = scale q k^T and p its softmax: dv = p^T dout, dp = dout v^T,
  // ds = p (dp - out . dout) scale, dq = ds k, dk = ds^T q. Dropout changes dp, and p in dv.
  void add_queries(const QueryGradient& head, const Range& queries,
                   std::optional<DiagonalSums>& sums) {
    const std::int64_t width = shape_.width;
    std::array<float, query_block> dot;
    cpu::dot_rows({head.out.at(queries.begin), head.out.row},
                  {head.dout.at(queries.begin), head.dout.row}, queries.size(), width, dot.data());
    queries_.fill(head.q.by_row(queries.begin), queries.size(), width);
    dout_.fill(head.dout.by_row(queries.begin), queries.size(), width);
    const HeadData& data = head.data;
    const Range seen = seen_by(shape_, data, queries);
    if (seen.size() <= 0)
      for (auto query = queries.begin; query < queries.end; ++query)
        std::fill_n(head.dq.at(query), width, 0.0f);
    for_ranges(seen, key_block, [&](const Range& keys) {
      score(head.q, queries, transposed_keys_, keys, width, p_);
      score(head.dout, queries, transposed_values_, keys, width, ds_);
      data.drop(ds_, queries, keys);
      cpu::soften_gradient(
          score_block(shape_, data, p_, queries, keys),
          {head.logsumexp + queries.begin,
           dot.data(),
           {scale_of(shape_), shape_.cap, data.biases_of(shape_, queries.begin, keys.begin)}},
          ds_);
      if (sums) sums->add(ds_, queries, keys);
      data.drop(p_, queries, keys);
      const auto dq =
          product_of({ds_, key_block, Order::by_row}, keys.size(), head.dq, queries, width);
      multiply(keys.begin == seen.begin ? dq : added(dq), keys_.from_depth(keys.begin));
      const Matrix<float> p{p_, key_block, Order::by_column}, ds{ds_, key_block, Order::by_column};
      multiply(added(product_of(ds, queries.size(), dk_, keys, width)), queries_.all());
      multiply(added(product_of(p, queries.size(), dv_, keys, width)), dout_.all());
    });
    if (sums) sums->end(queries);
  }

  AttentionShape shape_;
  HeadOut dk_, dv_;
  Scratch scratch_;
  Pack keys_, transposed_keys_, transposed_values_, queries_, dout_;
  float *p_, *ds_, *diagonals_;
};

}  // namespace

void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp, const AttentionData& data) {
  if (const auto* there = kernels_of(stream))
    return there->attention_forward(stream, shape, q, k, v, out, logsumexp, data);
  const DataOfHeads all(stream, shape, data);
  const auto length = shape.length, keys = shape.key_count(), width = shape.width;
  stream.for_each(shape.batch * shape.heads, [&](std::int64_t i) {
    const std::int64_t batch = i / shape.heads, head = i % shape.heads;
    const std::int64_t kv_head = kv_head_of(shape, head);
    forward_head(stream, shape, all.of(batch, head), HeadIn(q, length, width, batch, head),
                 HeadIn(k, keys, width, batch, kv_head), HeadIn(v, keys, width, batch, kv_head),
                 HeadOut(out, length, width, batch, head), logsumexp + i * length);
  });
}

void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv, const AttentionData& data, float* dbiases) {
  if (const auto* there = kernels_of(stream))
    return there->attention_backward(stream, shape, q, k, v, out, logsumexp, dout, dq, dk, dv, data,
                                     dbiases);
  const DataOfHeads all(stream, shape, data);
  const auto length = shape.length, keys = shape.key_count(), width = shape.width;
  Tensor of_samples;  // The gradients of biases.
  if (shape.buckets > 0) of_samples = stream.make({shape.batch, shape.buckets, shape.heads});
  stream.for_each(shape.batch * shape.kv_heads, [&](std::int64_t i) {
    const std::int64_t batch = i / shape.kv_heads, kv_head = i % shape.kv_heads;
    KeyValueGradient gradient(stream, shape, HeadIn(k, keys, width, batch, kv_head),
                              HeadIn(v, keys, width, batch, kv_head),
                              HeadOut(dk, keys, width, batch, kv_head),
                              HeadOut(dv, keys, width, batch, kv_head));
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      if (kv_head_of(shape, head) != kv_head) continue;
      float* const of_biases = of_samples.empty()
                                   ? nullptr
                                   : of_samples.f32() + batch * shape.buckets * shape.heads + head;
      gradient.add({all.of(batch, head), HeadIn(q, length, width, batch, head),
                    HeadIn(out, length, width, batch, head),
                    HeadIn(dout, length, width, batch, head),
                    logsumexp + (batch * shape.heads + head) * length,
                    HeadOut(dq, length, width, batch, head), of_biases});
    }
  });
  if (shape.buckets == 0) return;
  // The gradients of scores have the scale in them, which biases do not.
  const std::int64_t count = shape.buckets * shape.heads;
  stream.for_each(count, [&](std::int64_t i) {
    float sum = 0;
    for (std::int64_t batch = 0; batch < shape.batch; ++batch)
      sum += std::as_const(of_samples).f32()[batch * count + i];
    dbiases[i] = sum * (1 / scale_of(shape));
  });
}

}  // namespace troupe::kernels
