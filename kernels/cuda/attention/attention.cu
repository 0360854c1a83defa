#include <cmath>

#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/attention/biases.h"
#include "kernels/cuda/kernels.h"

// Computes in the order of kernels/cpu/attention.cpp, so that the bits are equal: queries in blocks
// of 32, which see keys up to the end of their block, and keys in blocks of 512, between which the
// running softmax is rescaled.
namespace troupe::kernels::cuda {
namespace {

constexpr int forward_rows = 16;  // Queries per block of threads, with a group of lanes for each.
constexpr int backward_rows = 8;
constexpr int key_rows = 16;      // Keys per block of threads, for their own gradients.
constexpr int keys_at_once = 64;  // Keys per tile of scores.

__global__ void attend(Attention all) {
  using Scores = Products<forward_rows, keys_at_once, forward_rows * lanes>;
  __shared__ float scores[forward_rows][key_block];
  __shared__ typename Scores::Shared shared;
  const auto& shape = all.shape;
  const std::int64_t batch = blockIdx.x / shape.heads, head = blockIdx.x % shape.heads;
  const std::int64_t kv_head = all.kv_head_of(head), width = shape.width;
  const std::int64_t first_query = std::int64_t{blockIdx.y} * forward_rows;
  const std::int64_t queries = lesser(forward_rows, shape.length - first_query);
  const float infinity = __int_as_float(0x7f800000);

  const unsigned lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const bool is_row = row < queries;
  float* const out =
      all.to.data + all.at(all.to.row, batch, head, first_query + (is_row ? row : 0));
  float top = -infinity, sum = 0;
  const float scale = all.scale_of_score();
  const QueryOf own = all.query_of(batch, head, first_query + (is_row ? row : 0));
  const auto [begin, end] = all.seen_by_block_of(batch, first_query);
  for (std::int64_t first = begin; first < end; first += key_block) {
    const std::int64_t keys = lesser(key_block, end - first);
    const Rows q = all.rows(all.q, batch, head, first_query, queries);
    for (std::int64_t tile = 0; tile < keys; tile += keys_at_once) {
      const Scores made(shared, q, all.key_rows(all.k, batch, kv_head, first + tile, keys - tile),
                        width);
      const std::int64_t c = tile + Scores::column();
      for (int i = 0; i < Scores::of_thread; ++i) {
        const std::int64_t r = Scores::row(i);
        if (c < keys && r < queries)
          scores[r][c] = all.score(made[i], head, first_query + r, first + c);
      }
    }
    __syncthreads();
    KeyRange visible = {0, 0};
    if (is_row) visible = all.seen_by(batch, own.position, first, keys);
    const std::int64_t passed = visible.begin, seen = visible.end;
    float* const mine = scores[row];
    float most = -infinity;
    for (std::int64_t c = passed + lane; c < seen; c += lanes) most = Greater()(most, mine[c]);
    most = fold(most, Greater());
    const float scaled = scale * most;
    const float higher = seen > passed && top < scaled ? scaled : top;
    float part = 0;
    // A lane begins in the window, as on the cores. It clears what lies before it as well.
    for (std::int64_t c = lane; is_row && c < lesser(passed, keys); c += lanes) mine[c] = 0.0f;
    for (std::int64_t c = passed + lane; c < keys; c += lanes) {
      const float term = c < seen ? exp_nonpositive(fmaf(mine[c], scale, -higher)) : 0.0f;
      if (c < seen) part += term;
      if (is_row) mine[c] = shape.rate > 0 ? all.dropped(own.key, first + c, term) : term;
    }
    part = sum_of_lanes(part);
    if (seen > passed) {
      const float kept = exp_nonpositive(top - higher);
      if (sum > 0 && top != higher)
        for (std::int64_t d = lane; d < width; d += lanes) out[d] *= kept;
      sum = sum * kept + part;
      top = higher;
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < queries * width; i += threads_in_block) {
      const std::int64_t r = i / width, d = i % width;
      float& number = all.to.data[all.at(all.to.row, batch, head, first_query + r) + d];
      float total = first == begin ? 0.0f : number;
      for (std::int64_t c = 0; c < keys; ++c)
        total = fmaf(scores[r][c], all.v.data[all.at_key(all.v.row, batch, kv_head, first + c) + d],
                     total);
      number = total;
    }
    __syncthreads();
  }
  if (!is_row) return;
  float& logsumexp = all.logsumexp[blockIdx.x * shape.length + first_query + row];
  if (sum == 0) {  // The query sees no key.
    for (std::int64_t d = lane; d < width; d += lanes) out[d] = 0;
    if (lane == 0) logsumexp = -infinity;
    return;
  }
  const float share = 1 / sum;
  for (std::int64_t d = lane; d < width; d += lanes) out[d] *= share;
  if (lane == 0) logsumexp = top + log_of(sum);
}

// The bound lets a thread have 128 registers.
__global__ void __launch_bounds__(backward_rows* lanes, 4) attend_back_to_queries(Attention all) {
  using Scores = Products<backward_rows, keys_at_once, backward_rows * lanes>;
  __shared__ typename Scores::Shared shared;
  __shared__ float ds[backward_rows][key_block];
  __shared__ float dots[backward_rows];
  const auto& shape = all.shape;
  const std::int64_t batch = blockIdx.x / shape.heads, head = blockIdx.x % shape.heads;
  const std::int64_t kv_head = all.kv_head_of(head), width = shape.width;
  const std::int64_t first_query = std::int64_t{blockIdx.y} * backward_rows;
  const std::int64_t queries = lesser(backward_rows, shape.length - first_query);
  const float* const logsumexp = all.logsumexp + blockIdx.x * shape.length + first_query;

  const unsigned lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const std::int64_t position = first_query + (row < queries ? row : 0);
  const float dot =
      dot_of(all.out.data + all.at(all.out.row, batch, head, position),
             all.dout.data + all.at(all.dout.row, batch, head, position), width, lane);
  if (lane == 0) dots[row] = dot;
  __syncthreads();
  const auto [begin, end] = all.seen_by_block_of(batch, first_query);
  if (begin >= end)
    for (std::int64_t i = threadIdx.x; i < queries * width; i += blockDim.x)
      all.dq.data[all.at(all.dq.row, batch, head, first_query + i / width) + i % width] = 0;
  for (std::int64_t first = begin; first < end; first += key_block) {
    const std::int64_t keys = lesser(key_block, end - first);
    const Rows q = all.rows(all.q, batch, head, first_query, queries);
    const Rows dout = all.rows(all.dout, batch, head, first_query, queries);
    for (std::int64_t tile = 0; tile < keys; tile += keys_at_once) {
      const std::int64_t at = first + tile, left = keys - tile, c = tile + Scores::column();
      const Scores scores(shared, q, all.key_rows(all.k, batch, kv_head, at, left), width);
      const Scores dps(shared, dout, all.key_rows(all.v, batch, kv_head, at, left), width);
      for (int i = 0; i < Scores::of_thread; ++i) {
        const std::int64_t r = Scores::row(i);
        if (r >= queries || c >= keys) continue;
        const QueryOf query = all.query_of(batch, head, first_query + r);
        const auto [passed, seen] = all.seen_by(batch, query.position, first, keys);
        ds[r][c] = passed <= c && c < seen
                       ? all.soften(query, first + c, scores[i], dps[i], logsumexp[r], dots[r]).ds
                       : 0.0f;
      }
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < queries * width; i += blockDim.x) {
      const std::int64_t r = i / width, d = i % width;
      float& number = all.dq.data[all.at(all.dq.row, batch, head, first_query + r) + d];
      float total = first == begin ? 0.0f : number;
      for (std::int64_t c = 0; c < keys; ++c)
        total =
            fmaf(ds[r][c], all.k.data[all.at_key(all.k.row, batch, kv_head, first + c) + d], total);
      number = total;
    }
    __syncthreads();
  }
}

/// Heads of queries add one after another, and each adds its queries in order.
__global__ void attend_back_to_keys(Attention all) {
  using Scores = Products<query_block, key_rows, threads_in_block>;
  __shared__ typename Scores::Shared shared;
  __shared__ float p[query_block][key_rows];
  __shared__ float ds[query_block][key_rows];
  __shared__ float dots[query_block];
  const auto& shape = all.shape;
  const std::int64_t batch = blockIdx.x / shape.kv_heads, kv_head = blockIdx.x % shape.kv_heads;
  const std::int64_t width = shape.width;
  const std::int64_t first_key = std::int64_t{blockIdx.y} * key_rows;
  const std::int64_t keys = lesser(key_rows, shape.key_count() - first_key);
  const auto gradient_at = [&](const HeadsOut& of, std::int64_t i) -> float& {
    return of.data[all.at_key(of.row, batch, kv_head, first_key + i / width) + i % width];
  };
  for (std::int64_t i = threadIdx.x; i < keys * width; i += threads_in_block)
    gradient_at(all.dk, i) = gradient_at(all.dv, i) = 0;

  const unsigned lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    if (all.kv_head_of(head) != kv_head) continue;
    const float* const logsumexp = all.logsumexp + (batch * shape.heads + head) * shape.length;
    for (std::int64_t first = 0; first < shape.length; first += query_block) {
      const std::int64_t queries = lesser(query_block, shape.length - first);
      const KeyRange of_block = all.seen_by_block_of(batch, first);
      const std::int64_t seen = lesser(of_block.end, first_key + keys) - first_key;
      if (seen <= 0 || first_key < of_block.begin) continue;
      for (std::int64_t r = group; r < query_block; r += lane_groups) {
        const std::int64_t position = first + (r < queries ? r : 0);
        const float dot =
            dot_of(all.out.data + all.at(all.out.row, batch, head, position),
                   all.dout.data + all.at(all.dout.row, batch, head, position), width, lane);
        if (lane == 0) dots[r] = dot;
      }
      __syncthreads();
      const Scores scores(shared, all.rows(all.q, batch, head, first, queries),
                          all.key_rows(all.k, batch, kv_head, first_key, seen), width);
      const Scores dps(shared, all.rows(all.dout, batch, head, first, queries),
                       all.key_rows(all.v, batch, kv_head, first_key, seen), width);
      const std::int64_t c = Scores::column();
      for (int i = 0; i < Scores::of_thread; ++i) {
        const std::int64_t r = Scores::row(i);
        if (r >= queries || c >= seen) continue;
        Softened softened = {0, 0};
        const QueryOf query = all.query_of(batch, head, first + r);
        const KeyRange visible = all.seen_by(batch, query.position, first_key, seen);
        if (visible.begin <= c && c < visible.end)
          softened = all.soften(query, first_key + c, scores[i], dps[i], logsumexp[query.position],
                                dots[r]);
        p[r][c] = softened.p;
        ds[r][c] = softened.ds;
      }
      __syncthreads();
      for (std::int64_t i = threadIdx.x; i < seen * width; i += threads_in_block) {
        const std::int64_t c = i / width, d = i % width;
        float dk = gradient_at(all.dk, i), dv = gradient_at(all.dv, i);
        for (std::int64_t r = 0; r < queries; ++r) {
          dk = fmaf(ds[r][c], all.q.data[all.at(all.q.row, batch, head, first + r) + d], dk);
          dv = fmaf(p[r][c], all.dout.data[all.at(all.dout.row, batch, head, first + r) + d], dv);
        }
        gradient_at(all.dk, i) = dk;
        gradient_at(all.dv, i) = dv;
      }
      __syncthreads();
    }
  }
}

float scale_of(const AttentionShape& shape) {
  return shape.scale != 0 ? shape.scale : 1 / std::sqrt(static_cast<float>(shape.width));
}
/// Heads are the x dimension, since the y dimension is limited to 65535.
dim3 grid(std::int64_t length, int rows, std::int64_t heads) {
  return dim3(static_cast<unsigned>(heads), blocks_for(length, rows).x);
}

/// Returns what all kernels read. `biases` are those of spread_biases().
Attention attention_of(const AttentionShape& shape, const AttentionData& data,
                       const Tensor& biases) {
  Attention all = {};
  all.shape = shape;
  all.scale = scale_of(shape);
  all.span = data.span;
  all.biases = biases.empty() ? nullptr : biases.f32();
  all.kept_from = static_cast<std::int32_t>(std::ceil(shape.rate * 0x1p24f));
  all.kept_scale = 1 / (1 - shape.rate);
  return all;
}

/// Returns it for the next kernel, which draws its own random numbers.
Attention for_kernel(Stream& stream, Attention all, const AttentionData& data) {
  if (all.shape.rate > 0) all.key = queue_of(stream).changing(data.key);
  return all;
}

}  // namespace

void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp, const AttentionData& data) {
  const Tensor biases = spread_biases(stream, shape, data.biases);
  Attention all = attention_of(shape, data, biases);
  all.q = q;
  all.k = k;
  all.v = v;
  all.to = out;
  all.logsumexp = logsumexp;
  launch(stream, grid(shape.length, forward_rows, shape.batch * shape.heads),
         dim3(forward_rows * lanes), attend, for_kernel(stream, all, data));
}

void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv, const AttentionData& data, float* dbiases) {
  const Tensor biases = spread_biases(stream, shape, data.biases);
  Attention all = attention_of(shape, data, biases);
  all.q = q;
  all.k = k;
  all.v = v;
  all.out = out;
  all.dout = dout;
  all.dq = dq;
  all.dk = dk;
  all.dv = dv;
  all.logsumexp = const_cast<float*>(logsumexp);
  launch(stream, grid(shape.length, backward_rows, shape.batch * shape.heads),
         dim3(backward_rows * lanes), attend_back_to_queries, for_kernel(stream, all, data));
  launch(stream, grid(shape.key_count(), key_rows, shape.batch * shape.kv_heads),
         dim3(threads_in_block), attend_back_to_keys, for_kernel(stream, all, data));
  if (shape.buckets > 0) attend_back_to_biases(stream, for_kernel(stream, all, data), dbiases);
}

}  // namespace troupe::kernels::cuda
