#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/parts/product.h"
#include "kernels/cpu/parts/scratch.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

using cpu::key_block;
using cpu::kv_head_of;
using cpu::Matrix;
using cpu::Order;
using cpu::Panels;
using cpu::Product;
using cpu::scale_of;
using cpu::Scratch;

// Queries are processed in small blocks, so that a causal mask wastes little work.
constexpr std::int64_t query_block = 32;

/// One head of one sequence, with a row for each position.
template <class Layout>
struct Head {
  decltype(Layout::data) data;
  std::int64_t row;

  Head(const AttentionShape& shape, const Layout& heads, std::int64_t batch, std::int64_t head)
      : data(heads.data + batch * shape.length * heads.row + head * shape.width), row(heads.row) {}

  decltype(Layout::data) at(std::int64_t position) const { return data + position * row; }
  Matrix<float> by_row(std::int64_t position) const { return {at(position), row, Order::by_row}; }
  Matrix<float> by_column(std::int64_t position) const {
    return {at(position), row, Order::by_column};
  }
};
using HeadIn = Head<HeadsIn>;
using HeadOut = Head<HeadsOut>;

/// A range of positions.
struct Range {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t size() const { return end - begin; }
};

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

/// Returns the keys that at least one of these queries sees. They begin with a block of keys, so
/// that a window changes no bit of a sum.
Range seen_by(const AttentionShape& shape, const Range& queries) {
  switch (shape.mask) {
    case Mask::full:
      return {0, shape.length};
    case Mask::causal:
      const std::int64_t first = shape.window > 0 ? queries.begin + 1 - shape.window : 0;
      return {std::max<std::int64_t>(first, 0) / key_block * key_block, queries.end};
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

void forward_head(Stream& stream, const AttentionShape& shape, const HeadIn& q, const HeadIn& k,
                  const HeadIn& v, const HeadOut& out, float* logsumexp) {
  const auto length = shape.length, width = shape.width;
  Scratch scratch(
      stream, Pack::floats(width, length) + Pack::floats(length, width) + query_block * key_block);
  Pack transposed_keys(scratch, width, length), values(scratch, length, width);
  float* scores = scratch.take(query_block * key_block);
  transposed_keys.fill(k.by_column(0), width, length);
  values.fill(v.by_row(0), length, width);
  for_ranges({0, length}, query_block, [&](const Range& queries) {
    std::array<cpu::RunningSoftmax, query_block> running;
    const cpu::OutputRows rows{out.at(queries.begin), out.row, width};
    const Range seen = seen_by(shape, queries);
    for_ranges(seen, key_block, [&](const Range& keys) {
      score(q, queries, transposed_keys, keys, width, scores);
      cpu::soften_scores(score_block(shape, scores, queries, keys), {scale_of(shape), shape.cap},
                         running.data(), rows);
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
  HeadIn q, out, dout;
  const float* logsumexp;
  HeadOut dq;
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
        keys_(scratch_, shape.length, shape.width),
        transposed_keys_(scratch_, shape.width, shape.length),
        transposed_values_(scratch_, shape.width, shape.length),
        queries_(scratch_, query_block, shape.width),
        dout_(scratch_, query_block, shape.width),
        p_(scratch_.take(query_block * key_block)),
        ds_(scratch_.take(query_block * key_block)) {
    keys_.fill(k.by_row(0), shape.length, shape.width);
    transposed_keys_.fill(k.by_column(0), shape.width, shape.length);
    transposed_values_.fill(v.by_column(0), shape.width, shape.length);
    clear(dk, shape.length, shape.width);
    clear(dv, shape.length, shape.width);
  }

  void add(const QueryGradient& head) {
    for_ranges({0, shape_.length}, query_block,
               [&](const Range& queries) { add_queries(head, queries); });
  }

 private:
  static std::int64_t floats(const AttentionShape& shape) {
    return 2 * Pack::floats(shape.width, shape.length) + Pack::floats(shape.length, shape.width) +
           2 * Pack::floats(query_block, shape.width) + 2 * query_block * key_block;
  }

  // With s = scale q k^T and p its softmax: dv = p^T dout, dp = dout v^T,
  // ds = p (dp - out . dout) scale, dq = ds k, dk = ds^T q.
  void add_queries(const QueryGradient& head, const Range& queries) {
    const std::int64_t width = shape_.width;
    std::array<float, query_block> dot;
    cpu::dot_rows({head.out.at(queries.begin), head.out.row},
                  {head.dout.at(queries.begin), head.dout.row}, queries.size(), width, dot.data());
    queries_.fill(head.q.by_row(queries.begin), queries.size(), width);
    dout_.fill(head.dout.by_row(queries.begin), queries.size(), width);
    const Range seen = seen_by(shape_, queries);
    for_ranges(seen, key_block, [&](const Range& keys) {
      score(head.q, queries, transposed_keys_, keys, width, p_);
      score(head.dout, queries, transposed_values_, keys, width, ds_);
      cpu::soften_gradient(
          score_block(shape_, p_, queries, keys),
          {head.logsumexp + queries.begin, dot.data(), {scale_of(shape_), shape_.cap}}, ds_);
      const auto dq =
          product_of({ds_, key_block, Order::by_row}, keys.size(), head.dq, queries, width);
      multiply(keys.begin == seen.begin ? dq : added(dq), keys_.from_depth(keys.begin));
      const Matrix<float> p{p_, key_block, Order::by_column}, ds{ds_, key_block, Order::by_column};
      multiply(added(product_of(ds, queries.size(), dk_, keys, width)), queries_.all());
      multiply(added(product_of(p, queries.size(), dv_, keys, width)), dout_.all());
    });
  }

  AttentionShape shape_;
  HeadOut dk_, dv_;
  Scratch scratch_;
  Pack keys_, transposed_keys_, transposed_values_, queries_, dout_;
  float *p_, *ds_;
};

}  // namespace

void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp) {
  if (const auto* there = kernels_of(stream))
    return there->attention_forward(stream, shape, q, k, v, out, logsumexp);
  stream.for_each(shape.batch * shape.heads, [&](std::int64_t i) {
    const std::int64_t batch = i / shape.heads, head = i % shape.heads;
    const std::int64_t kv_head = kv_head_of(shape, head);
    forward_head(stream, shape, HeadIn(shape, q, batch, head), HeadIn(shape, k, batch, kv_head),
                 HeadIn(shape, v, batch, kv_head), HeadOut(shape, out, batch, head),
                 logsumexp + i * shape.length);
  });
}

void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv) {
  if (const auto* there = kernels_of(stream))
    return there->attention_backward(stream, shape, q, k, v, out, logsumexp, dout, dq, dk, dv);
  stream.for_each(shape.batch * shape.kv_heads, [&](std::int64_t i) {
    const std::int64_t batch = i / shape.kv_heads, kv_head = i % shape.kv_heads;
    KeyValueGradient gradient(stream, shape, HeadIn(shape, k, batch, kv_head),
                              HeadIn(shape, v, batch, kv_head), HeadOut(shape, dk, batch, kv_head),
                              HeadOut(shape, dv, batch, kv_head));
    for (std::int64_t head = 0; head < shape.heads; ++head)
      if (kv_head_of(shape, head) == kv_head)
        gradient.add({HeadIn(shape, q, batch, head), HeadIn(shape, out, batch, head),
                      HeadIn(shape, dout, batch, head),
                      logsumexp + (batch * shape.heads + head) * shape.length,
                      HeadOut(shape, dq, batch, head)});
  });
}

}  // namespace troupe::kernels
