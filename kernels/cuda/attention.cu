#include <cmath>

#include "kernels/attention.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"

// The order of kernels/cpu/attention.cpp: queries in blocks of 32, which see keys up to the end of
// their block, and keys in blocks of 512, between which the running softmax moves on. So the bits
// are the same.
namespace troupe::kernels::cuda {
namespace {

constexpr std::int64_t query_block = 32;
constexpr std::int64_t key_block = 512;
constexpr int forward_rows = 16;  // Queries of a block of threads: a group of lanes for each.
constexpr int backward_rows = 8;
constexpr int key_rows = 16;  // Keys of a block of threads, for their own gradients.

struct Attention {
  AttentionShape shape;
  HeadsIn q, k, v, out, dout;
  HeadsOut to, dq, dk, dv;  // `to` is what forward writes.
  float* logsumexp;
  float scale;

  __device__ std::int64_t kv_head_of(std::int64_t head) const {
    return head * shape.kv_heads / shape.heads;
  }
  /// Where a head's numbers of a position lie.
  __device__ std::int64_t at(std::int64_t row, std::int64_t batch, std::int64_t head,
                             std::int64_t position) const {
    return (batch * shape.length + position) * row + head * shape.width;
  }
  /// How many keys the block of a query sees.
  __device__ std::int64_t seen_by_block_of(std::int64_t query) const {
    if (shape.mask == Mask::full) return shape.length;
    return lesser((query / query_block + 1) * query_block, shape.length);
  }
  /// How many of the keys from `first` on a query sees itself.
  __device__ std::int64_t seen_by(std::int64_t query, std::int64_t first, std::int64_t keys) const {
    if (shape.mask == Mask::full) return keys;
    return lesser(query < first ? 0 : query + 1 - first, keys);
  }
};

__device__ float product_of(const float* a, const float* b, std::int64_t width) {
  float sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum = fmaf(a[d], b[d], sum);
  return sum;
}

/// By lanes, as a group of them makes it.
__device__ float dot_of(const float* a, const float* b, std::int64_t width, unsigned lane) {
  float sum = 0;
  for (std::int64_t d = lane; d < width; d += lanes) sum = fmaf(a[d], b[d], sum);
  return sum_of_lanes(sum);
}

__global__ void attend(Attention all) {
  __shared__ float scores[forward_rows][key_block];
  const auto& shape = all.shape;
  const std::int64_t batch = blockIdx.y / shape.heads, head = blockIdx.y % shape.heads;
  const std::int64_t kv_head = all.kv_head_of(head), width = shape.width;
  const std::int64_t first_query = std::int64_t{blockIdx.x} * forward_rows;
  const std::int64_t queries = lesser(forward_rows, shape.length - first_query);
  const float infinity = __int_as_float(0x7f800000);

  const unsigned lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const bool is_row = row < queries;
  float* const out =
      all.to.data + all.at(all.to.row, batch, head, first_query + (is_row ? row : 0));
  float top = -infinity, sum = 0;
  const std::int64_t seen_by_block = all.seen_by_block_of(first_query);
  for (std::int64_t first = 0; first < seen_by_block; first += key_block) {
    const std::int64_t keys = lesser(key_block, seen_by_block - first);
    for (std::int64_t i = threadIdx.x; i < queries * keys; i += threads_in_block) {
      const std::int64_t r = i / keys, c = i % keys;
      scores[r][c] = product_of(all.q.data + all.at(all.q.row, batch, head, first_query + r),
                                all.k.data + all.at(all.k.row, batch, kv_head, first + c), width);
    }
    __syncthreads();
    const std::int64_t seen = is_row ? all.seen_by(first_query + row, first, keys) : 0;
    float* const mine = scores[row];
    float most = -infinity;
    for (std::int64_t c = lane; c < seen; c += lanes) most = Greater()(most, mine[c]);
    most = fold(most, Greater());
    const float scaled = all.scale * most;
    const float higher = seen > 0 && top < scaled ? scaled : top;
    float part = 0;
    for (std::int64_t c = lane; c < keys; c += lanes) {
      const float term = c < seen ? exp_nonpositive(fmaf(mine[c], all.scale, -higher)) : 0.0f;
      if (c < seen) part += term;
      if (is_row) mine[c] = term;
    }
    part = sum_of_lanes(part);
    if (seen > 0) {
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
      float total = first == 0 ? 0.0f : number;
      for (std::int64_t c = 0; c < keys; ++c)
        total =
            fmaf(scores[r][c], all.v.data[all.at(all.v.row, batch, kv_head, first + c) + d], total);
      number = total;
    }
    __syncthreads();
  }
  if (!is_row) return;
  const float share = 1 / sum;
  for (std::int64_t d = lane; d < width; d += lanes) out[d] *= share;
  if (lane == 0) all.logsumexp[blockIdx.y * shape.length + first_query + row] = top + log_of(sum);
}

/// What the gradient of a score is made of.
struct Softened {
  float p, ds;
};
__device__ Softened soften(const Attention& all, const float* q, const float* k, const float* v,
                           const float* dout, float logsumexp, float dot) {
  const float score = product_of(q, k, all.shape.width), dp = product_of(dout, v, all.shape.width);
  const float p = exp_nonpositive(fmaf(score, all.scale, -logsumexp));
  return {p, p * all.scale * (dp - dot)};
}

__global__ void attend_back_to_queries(Attention all) {
  __shared__ float ds[backward_rows][key_block];
  __shared__ float dots[backward_rows];
  const auto& shape = all.shape;
  const std::int64_t batch = blockIdx.y / shape.heads, head = blockIdx.y % shape.heads;
  const std::int64_t kv_head = all.kv_head_of(head), width = shape.width;
  const std::int64_t first_query = std::int64_t{blockIdx.x} * backward_rows;
  const std::int64_t queries = lesser(backward_rows, shape.length - first_query);
  const float* const logsumexp = all.logsumexp + blockIdx.y * shape.length + first_query;

  const unsigned lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const std::int64_t position = first_query + (row < queries ? row : 0);
  const float dot =
      dot_of(all.out.data + all.at(all.out.row, batch, head, position),
             all.dout.data + all.at(all.dout.row, batch, head, position), width, lane);
  if (lane == 0) dots[row] = dot;
  __syncthreads();
  const std::int64_t seen_by_block = all.seen_by_block_of(first_query);
  for (std::int64_t first = 0; first < seen_by_block; first += key_block) {
    const std::int64_t keys = lesser(key_block, seen_by_block - first);
    for (std::int64_t i = threadIdx.x; i < queries * keys; i += blockDim.x) {
      const std::int64_t r = i / keys, c = i % keys, query = first_query + r;
      ds[r][c] = 0;
      if (c < all.seen_by(query, first, keys))
        ds[r][c] =
            soften(all, all.q.data + all.at(all.q.row, batch, head, query),
                   all.k.data + all.at(all.k.row, batch, kv_head, first + c),
                   all.v.data + all.at(all.v.row, batch, kv_head, first + c),
                   all.dout.data + all.at(all.dout.row, batch, head, query), logsumexp[r], dots[r])
                .ds;
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < queries * width; i += blockDim.x) {
      const std::int64_t r = i / width, d = i % width;
      float& number = all.dq.data[all.at(all.dq.row, batch, head, first_query + r) + d];
      float total = first == 0 ? 0.0f : number;
      for (std::int64_t c = 0; c < keys; ++c)
        total = fmaf(ds[r][c], all.k.data[all.at(all.k.row, batch, kv_head, first + c) + d], total);
      number = total;
    }
    __syncthreads();
  }
}

/// The heads of queries add one after the other, and in each the queries in order.
__global__ void attend_back_to_keys(Attention all) {
  __shared__ float p[query_block][key_rows];
  __shared__ float ds[query_block][key_rows];
  __shared__ float dots[query_block];
  const auto& shape = all.shape;
  const std::int64_t batch = blockIdx.y / shape.kv_heads, kv_head = blockIdx.y % shape.kv_heads;
  const std::int64_t width = shape.width;
  const std::int64_t first_key = std::int64_t{blockIdx.x} * key_rows;
  const std::int64_t keys = lesser(key_rows, shape.length - first_key);
  const auto gradient_at = [&](const HeadsOut& of, std::int64_t i) -> float& {
    return of.data[all.at(of.row, batch, kv_head, first_key + i / width) + i % width];
  };
  for (std::int64_t i = threadIdx.x; i < keys * width; i += threads_in_block)
    gradient_at(all.dk, i) = gradient_at(all.dv, i) = 0;

  const unsigned lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    if (all.kv_head_of(head) != kv_head) continue;
    const float* const logsumexp = all.logsumexp + (batch * shape.heads + head) * shape.length;
    for (std::int64_t first = 0; first < shape.length; first += query_block) {
      const std::int64_t queries = lesser(query_block, shape.length - first);
      const std::int64_t seen = lesser(all.seen_by_block_of(first), first_key + keys) - first_key;
      if (seen <= 0) continue;
      for (std::int64_t r = group; r < query_block; r += lane_groups) {
        const std::int64_t position = first + (r < queries ? r : 0);
        const float dot =
            dot_of(all.out.data + all.at(all.out.row, batch, head, position),
                   all.dout.data + all.at(all.dout.row, batch, head, position), width, lane);
        if (lane == 0) dots[r] = dot;
      }
      __syncthreads();
      for (std::int64_t i = threadIdx.x; i < queries * seen; i += threads_in_block) {
        const std::int64_t r = i / seen, c = i % seen, query = first + r, key = first_key + c;
        Softened softened = {0, 0};
        if (shape.mask == Mask::full || key <= query)
          softened = soften(all, all.q.data + all.at(all.q.row, batch, head, query),
                            all.k.data + all.at(all.k.row, batch, kv_head, key),
                            all.v.data + all.at(all.v.row, batch, kv_head, key),
                            all.dout.data + all.at(all.dout.row, batch, head, query),
                            logsumexp[query], dots[r]);
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
  return 1 / std::sqrt(static_cast<float>(shape.width));
}
dim3 grid(std::int64_t length, int rows, std::int64_t heads) {
  return dim3(blocks_for(length, rows).x, static_cast<unsigned>(heads));
}

}  // namespace

void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp) {
  Attention all = {};
  all.shape = shape;
  all.q = q;
  all.k = k;
  all.v = v;
  all.to = out;
  all.logsumexp = logsumexp;
  all.scale = scale_of(shape);
  launch(stream, grid(shape.length, forward_rows, shape.batch * shape.heads),
         dim3(forward_rows * lanes), attend, all);
}

void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv) {
  const Attention all{
      shape, q, k, v, out, dout, {}, dq, dk, dv, const_cast<float*>(logsumexp), scale_of(shape)};
  launch(stream, grid(shape.length, backward_rows, shape.batch * shape.heads),
         dim3(backward_rows * lanes), attend_back_to_queries, all);
  launch(stream, grid(shape.length, key_rows, shape.batch * shape.kv_heads), dim3(threads_in_block),
         attend_back_to_keys, all);
}

}  // namespace troupe::kernels::cuda
