#include "kernels/attention_cache.h"

#include <algorithm>
#include <cassert>

#include "kernels/attention_scores.h"
#include "kernels/cpu/attention_data.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/parts/product.h"

namespace troupe::kernels {
namespace {

using cpu::key_block;
using cpu::Order;
using cpu::panel_columns;
using cpu::Panels;
using cpu::Product;
using cpu::Range;

/// The layout of a cache. Each head has its keys in panels, a column for each position, and then
/// its values, a row for each position. Position p lies in slot p % slots. The slots are whole
/// blocks of keys, or no position takes the place of another, so that the slots of a block are
/// neighbours. Last come the biases, for each head of queries those of distances
/// 1 - length, ..., 0.
struct CacheLayout {
  std::int64_t slots, width, value_row, heads, query_heads, distances;

  explicit CacheLayout(const AttentionShape& shape)
      : slots(cpu::panel_count(shape.key_count()) * panel_columns),
        width(shape.width),
        value_row(cpu::panel_count(shape.width) * panel_columns),
        heads(shape.kv_heads),
        query_heads(shape.heads),
        distances(shape.buckets > 0 ? shape.length : 0) {
    assert(shape.batch == 1 && (shape.mask == Mask::causal) == (shape.keys == 0));
    assert(shape.mask == Mask::causal || shape.buckets == 0);
    if (shape.window > 0)
      slots = std::min(slots, (shape.window + key_block - 1) / key_block * key_block);
  }

  std::int64_t floats_of_head() const { return slots * (width + value_row); }
  std::int64_t floats() const { return heads * floats_of_head() + query_heads * distances; }

  /// Returns the key's first number. The next ones lie `panel_columns` apart.
  std::int64_t key(std::int64_t head, std::int64_t position) const {
    const std::int64_t slot = position % slots;
    return head * floats_of_head() + slot / panel_columns * panel_columns * width +
           slot % panel_columns;
  }
  std::int64_t value(std::int64_t head, std::int64_t position) const {
    return head * floats_of_head() + slots * width + position % slots * value_row;
  }
  /// Returns the bias of distance 1 - length.
  std::int64_t bias(std::int64_t query_head) const {
    return heads * floats_of_head() + query_head * distances;
  }
};

const float* row_of(HeadsOf heads, std::int64_t row) {
  return heads.tensor.f32() + row * heads.tensor.shape().last() + heads.first;
}

void keep(const CacheLayout& layout, std::int64_t position, const float* k, const float* v,
          float* cache) {
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    float* const key = cache + layout.key(head, position);
    for (std::int64_t i = 0; i < layout.width; ++i)
      key[i * panel_columns] = k[head * layout.width + i];
    std::copy_n(v + head * layout.width, layout.width, cache + layout.value(head, position));
  }
}

/// The keys that a row of one head of queries attends to.
struct SeenInCache {
  Range keys;
  const float* biases = nullptr;  // One for each key, from key 0 on; null: none.
};

/// Returns what the query at this position of a text sees.
SeenInCache seen_in_text(const AttentionShape& shape, const CacheLayout& layout,
                         std::int64_t position, std::int64_t head, const float* cache) {
  const std::int64_t end = position + 1;
  SeenInCache seen{{shape.window > 0 ? std::max<std::int64_t>(end - shape.window, 0) : 0, end}};
  if (layout.distances > 0) seen.biases = cache + layout.bias(head) + layout.distances - end;
  return seen;
}

/// Computes a single row of what forward_head() in attention.cpp computes for blocks of queries.
/// The order of each sum is the same: it follows from the blocks of keys and from Product.
void attend_one(const AttentionShape& shape, const CacheLayout& layout, const SeenInCache& seen,
                std::int64_t kv_head, const float* q, const float* cache, float* out) {
  const auto [first_seen, end] = seen.keys;
  alignas(64) float scores[key_block];
  cpu::RunningSoftmax running;
  const cpu::OutputRows row{out, shape.width, shape.width};
  for (std::int64_t begin = first_seen / key_block * key_block; begin < end; begin += key_block) {
    const std::int64_t columns = std::min(key_block, end - begin);
    const std::int64_t passed = std::max<std::int64_t>(first_seen - begin, 0);
    const std::int64_t from = passed / panel_columns * panel_columns;
    multiply(Product<float>{.rows = 1,
                            .columns = columns - from,
                            .depth = shape.width,
                            .a = {q, shape.width, Order::by_row},
                            .c = scores + from,
                            .c_stride = key_block},
             Panels<float>{cache + layout.key(kv_head, begin + from), panel_columns * shape.width});
    cpu::soften_scores(
        {.scores = scores,
         .stride = key_block,
         .rows = 1,
         .columns = columns,
         .seen_by_first = columns,
         .passed_by_first = passed},
        {cpu::scale_of(shape), shape.cap, seen.biases ? seen.biases + begin : nullptr}, &running,
        row);
    Product<float> weighted{.rows = 1,
                            .columns = shape.width,
                            .depth = columns - passed,
                            .a = {scores + passed, key_block, Order::by_row},
                            .c = out,
                            .c_stride = shape.width};
    if (begin > first_seen) weighted.start = out;
    multiply(weighted, Panels<float>{cache + layout.value(kv_head, begin + passed), panel_columns,
                                     layout.value_row});
  }
  float logsumexp;
  cpu::finish_softmax(&running, 1, row, &logsumexp);
}

}  // namespace

Tensor make_attention_cache(Stream& stream, const AttentionShape& shape, const float* biases) {
  const CacheLayout layout(shape);
  Tensor cache = stream.make({layout.floats()});
  for (std::int64_t i = 0; i < layout.distances; ++i) {
    const float* const of_heads = biases + bucket_of(shape, i + 1 - shape.length) * shape.heads;
    for (std::int64_t head = 0; head < shape.heads; ++head)
      cache.f32()[layout.bias(head) + i] = of_heads[head];
  }
  return cache;
}

void keep_in_cache(Stream& stream, const AttentionShape& shape, std::int64_t first, HeadsOf k,
                   HeadsOf v, Tensor& cache) {
  assert(!stream.device());
  const CacheLayout layout(shape);
  const std::int64_t rows = k.tensor.shape().rows();
  assert(first + rows <= shape.key_count() && cache.count() == layout.floats());
  for (std::int64_t row = std::max<std::int64_t>(rows - layout.slots, 0); row < rows; ++row)
    keep(layout, first + row, row_of(k, row), row_of(v, row), cache.f32());
}

void attend_to_cache(Stream& stream, const AttentionShape& shape, std::int64_t first, HeadsOf q,
                     HeadsOf k, HeadsOf v, HeadsInto out, Tensor& cache) {
  assert(!stream.device());
  const CacheLayout layout(shape);
  const std::int64_t rows = q.tensor.shape().rows();
  assert(first + rows <= shape.length && cache.count() == layout.floats());
  const std::int64_t out_row = out.tensor.shape().last();
  for (std::int64_t row = 0; row < rows; ++row) {
    keep(layout, first + row, row_of(k, row), row_of(v, row), cache.f32());
    stream.for_each(shape.heads, [&](std::int64_t head) {
      attend_one(shape, layout, seen_in_text(shape, layout, first + row, head, cache.f32()),
                 cpu::kv_head_of(shape, head), row_of(q, row) + head * shape.width, cache.f32(),
                 out.tensor.f32() + row * out_row + out.first + head * shape.width);
    });
  }
}

void attend_to_sequence(Stream& stream, const AttentionShape& shape, HeadsOf q,
                        const std::int32_t* span, HeadsInto out, const Tensor& cache) {
  assert(!stream.device());
  const CacheLayout layout(shape);
  assert(cache.count() == layout.floats());
  const std::int64_t out_row = out.tensor.shape().last();
  for (std::int64_t row = 0; row < q.tensor.shape().rows(); ++row) {
    Range keys{0, shape.keys};
    if (span)
      keys = {std::max<std::int64_t>(span[2 * row], 0),
              std::min<std::int64_t>(span[2 * row + 1], shape.keys)};
    if (keys.size() <= 0) keys = {0, 0};
    stream.for_each(shape.heads, [&](std::int64_t head) {
      attend_one(shape, layout, {keys}, cpu::kv_head_of(shape, head),
                 row_of(q, row) + head * shape.width, cache.f32(),
                 out.tensor.f32() + row * out_row + out.first + head * shape.width);
    });
  }
}

}  // namespace troupe::kernels
