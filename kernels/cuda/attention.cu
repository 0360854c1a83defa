#include <cmath>

#include "kernels/attention.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/tile.cuh"

// Computes in the order of kernels/cpu/attention.cpp, so that the bits are equal: queries in blocks
// of 32, which see keys up to the end of their block, and keys in blocks of 512, between which the
// running softmax is rescaled.
namespace troupe::kernels::cuda {
namespace {

constexpr int query_block = 32;
constexpr std::int64_t key_block = 512;
constexpr int forward_rows = 16;  // Queries per block of threads, with a group of lanes for each.
constexpr int backward_rows = 8;
constexpr int key_rows = 16;      // Keys per block of threads, for their own gradients.
constexpr int keys_at_once = 64;  // Keys per tile of scores.

/// Rows of a head; only the first `count` exist.
struct Rows {
  const float* data;
  std::int64_t stride, count;
};

struct Attention {
  AttentionShape shape;
  HeadsIn q, k, v, out, dout;
  HeadsOut to, dq, dk, dv;  // `to` is the output of the forward pass.
  float* logsumexp;
  float scale;

  __device__ std::int64_t kv_head_of(std::int64_t head) const {
    return head * shape.kv_heads / shape.heads;
  }
  /// Returns the offset of a head's numbers at a position.
  __device__ std::int64_t at(std::int64_t row, std::int64_t batch, std::int64_t head,
                             std::int64_t position) const {
    return (batch * shape.length + position) * row + head * shape.width;
  }
  __device__ Rows rows(const HeadsIn& of, std::int64_t batch, std::int64_t head,
                       std::int64_t position, std::int64_t count) const {
    return {of.data + at(of.row, batch, head, position), of.row, count};
  }
  /// Returns how many keys are visible to the block of a query.
  __device__ std::int64_t seen_by_block_of(std::int64_t query) const {
    if (shape.mask == Mask::full) return shape.length;
    return lesser((query / query_block + 1) * query_block, shape.length);
  }
  /// Returns the first key of the blocks of keys that are visible to the block of a query.
  __device__ std::int64_t begin_of_block_of(std::int64_t query) const {
    if (shape.window == 0) return 0;
    const std::int64_t first = query / query_block * query_block + 1 - shape.window;
    return first < 0 ? 0 : first / key_block * key_block;
  }
  /// Returns how many of the keys from `first` on lie before the window of a query.
  __device__ std::int64_t passed_by(std::int64_t query, std::int64_t first,
                                    std::int64_t keys) const {
    if (shape.window == 0) return 0;
    const std::int64_t passed = query + 1 - shape.window - first;
    return passed < 0 ? 0 : lesser(passed, keys);
  }
  /// Returns the capped score of a product; needs a cap.
  __device__ float capped(float product) const {
    return shape.cap * tanh_of(product * (scale / shape.cap));
  }
  /// Returns how many of the keys from `first` on are visible to a query.
  __device__ std::int64_t seen_by(std::int64_t query, std::int64_t first, std::int64_t keys) const {
    if (shape.mask == Mask::full) return keys;
    return lesser(query < first ? 0 : query + 1 - first, keys);
  }
};

/// Scalar products of some rows with some other rows, computed by a block of threads. Each is one
/// chain in the order of depth. Operands are copied to shared memory piece by piece, so that
/// neighbouring threads read neighbouring numbers.
template <int rows, int columns, int threads>
class Products {
  static constexpr int depth_at_once = 32;
  static constexpr int rows_apart = threads / columns;

 public:
  static constexpr int of_thread = rows / rows_apart;

  struct Shared {
    // One extra column puts neighbours in a column into different banks.
    float a[rows][depth_at_once + 1];
    float b[columns][depth_at_once + 1];
  };

  __device__ static std::int64_t column() { return threadIdx.x % columns; }
  __device__ static std::int64_t row(int i) { return threadIdx.x / columns + i * rows_apart; }

  /// All threads of the block must call it together.
  __device__ Products(Shared& shared, const Rows& a, const Rows& b, std::int64_t width) {
    for (std::int64_t first = 0; first < width; first += depth_at_once) {
      const int depth = static_cast<int>(lesser(depth_at_once, width - first));
      __syncthreads();  // Wait until all threads have read the previous piece.
      read(shared.a, a, first, depth);
      read(shared.b, b, first, depth);
      __syncthreads();
      for (int k = 0; k < depth; ++k) {
        const float of_b = shared.b[column()][k];
        for (int i = 0; i < of_thread; ++i) sums_[i] = fmaf(shared.a[row(i)][k], of_b, sums_[i]);
      }
    }
  }

  /// Returns the product of row(i) and column().
  __device__ float operator[](int i) const { return sums_[i]; }

 private:
  template <int lines>
  __device__ static void read(float (&to)[lines][depth_at_once + 1], const Rows& from,
                              std::int64_t first, int depth) {
    for (int i = static_cast<int>(threadIdx.x); i < lines * depth_at_once; i += threads) {
      const int line = i / depth_at_once, k = i % depth_at_once;
      to[line][k] =
          line < from.count && k < depth ? from.data[line * from.stride + first + k] : 0.0f;
    }
  }

  float sums_[of_thread] = {};
};

/// Computes a scalar product in lanes, with a group of threads.
__device__ float dot_of(const float* a, const float* b, std::int64_t width, unsigned lane) {
  float sum = 0;
  for (std::int64_t d = lane; d < width; d += lanes) sum = fmaf(a[d], b[d], sum);
  return sum_of_lanes(sum);
}

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
  const bool is_capped = shape.cap > 0;
  const float scale = is_capped ? 1.0f : all.scale;
  const std::int64_t seen_by_block = all.seen_by_block_of(first_query);
  const std::int64_t begin = all.begin_of_block_of(first_query);
  for (std::int64_t first = begin; first < seen_by_block; first += key_block) {
    const std::int64_t keys = lesser(key_block, seen_by_block - first);
    const Rows q = all.rows(all.q, batch, head, first_query, queries);
    for (std::int64_t tile = 0; tile < keys; tile += keys_at_once) {
      const Scores made(shared, q, all.rows(all.k, batch, kv_head, first + tile, keys - tile),
                        width);
      const std::int64_t c = tile + Scores::column();
      for (int i = 0; i < Scores::of_thread; ++i)
        if (c < keys) scores[Scores::row(i)][c] = is_capped ? all.capped(made[i]) : made[i];
    }
    __syncthreads();
    const std::int64_t passed = is_row ? all.passed_by(first_query + row, first, keys) : 0;
    const std::int64_t seen = is_row ? all.seen_by(first_query + row, first, keys) : 0;
    float* const mine = scores[row];
    float most = -infinity;
    for (std::int64_t c = passed + lane; c < seen; c += lanes) most = Greater()(most, mine[c]);
    most = fold(most, Greater());
    const float scaled = scale * most;
    const float higher = seen > passed && top < scaled ? scaled : top;
    float part = 0;
    // A lane begins in the window, as on the cores. It clears what lies before it as well.
    for (std::int64_t c = lane; is_row && c < passed; c += lanes) mine[c] = 0.0f;
    for (std::int64_t c = passed + lane; c < keys; c += lanes) {
      const float term = c < seen ? exp_nonpositive(fmaf(mine[c], scale, -higher)) : 0.0f;
      if (c < seen) part += term;
      if (is_row) mine[c] = term;
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
        total =
            fmaf(scores[r][c], all.v.data[all.at(all.v.row, batch, kv_head, first + c) + d], total);
      number = total;
    }
    __syncthreads();
  }
  if (!is_row) return;
  const float share = 1 / sum;
  for (std::int64_t d = lane; d < width; d += lanes) out[d] *= share;
  if (lane == 0) all.logsumexp[blockIdx.x * shape.length + first_query + row] = top + log_of(sum);
}

/// A probability and the gradient of its score.
struct Softened {
  float p, ds;
};
__device__ Softened soften(const Attention& all, float product, float dp, float logsumexp,
                           float dot) {
  if (all.shape.cap > 0) {
    const float score = all.capped(product), t = score * (1 / all.shape.cap);
    const float p = exp_nonpositive(score - logsumexp);
    return {p, p * all.scale * ((dp - dot) * fmaf(-t, t, 1.0f))};
  }
  const float p = exp_nonpositive(fmaf(product, all.scale, -logsumexp));
  return {p, p * all.scale * (dp - dot)};
}

__global__ void attend_back_to_queries(Attention all) {
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
  const std::int64_t seen_by_block = all.seen_by_block_of(first_query);
  const std::int64_t begin = all.begin_of_block_of(first_query);
  for (std::int64_t first = begin; first < seen_by_block; first += key_block) {
    const std::int64_t keys = lesser(key_block, seen_by_block - first);
    const Rows q = all.rows(all.q, batch, head, first_query, queries);
    const Rows dout = all.rows(all.dout, batch, head, first_query, queries);
    for (std::int64_t tile = 0; tile < keys; tile += keys_at_once) {
      const std::int64_t at = first + tile, left = keys - tile, c = tile + Scores::column();
      const Scores scores(shared, q, all.rows(all.k, batch, kv_head, at, left), width);
      const Scores dps(shared, dout, all.rows(all.v, batch, kv_head, at, left), width);
      for (int i = 0; i < Scores::of_thread; ++i) {
        const std::int64_t r = Scores::row(i);
        if (r >= queries || c >= keys) continue;
        const std::int64_t query = first_query + r;
        const bool is_seen =
            c < all.seen_by(query, first, keys) && c >= all.passed_by(query, first, keys);
        ds[r][c] = is_seen ? soften(all, scores[i], dps[i], logsumexp[r], dots[r]).ds : 0.0f;
      }
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < queries * width; i += blockDim.x) {
      const std::int64_t r = i / width, d = i % width;
      float& number = all.dq.data[all.at(all.dq.row, batch, head, first_query + r) + d];
      float total = first == begin ? 0.0f : number;
      for (std::int64_t c = 0; c < keys; ++c)
        total = fmaf(ds[r][c], all.k.data[all.at(all.k.row, batch, kv_head, first + c) + d], total);
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
      if (seen <= 0 || first_key < all.begin_of_block_of(first)) continue;
      for (std::int64_t r = group; r < query_block; r += lane_groups) {
        const std::int64_t position = first + (r < queries ? r : 0);
        const float dot =
            dot_of(all.out.data + all.at(all.out.row, batch, head, position),
                   all.dout.data + all.at(all.dout.row, batch, head, position), width, lane);
        if (lane == 0) dots[r] = dot;
      }
      __syncthreads();
      const Scores scores(shared, all.rows(all.q, batch, head, first, queries),
                          all.rows(all.k, batch, kv_head, first_key, seen), width);
      const Scores dps(shared, all.rows(all.dout, batch, head, first, queries),
                       all.rows(all.v, batch, kv_head, first_key, seen), width);
      const std::int64_t c = Scores::column(), key = first_key + c;
      for (int i = 0; i < Scores::of_thread; ++i) {
        const std::int64_t r = Scores::row(i), query = first + r;
        if (r >= queries || c >= seen) continue;
        Softened softened = {0, 0};
        const bool is_in_window = shape.window == 0 || key > query - shape.window;
        if ((shape.mask == Mask::full || key <= query) && is_in_window)
          softened = soften(all, scores[i], dps[i], logsumexp[query], dots[r]);
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
