#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/attention/biases.h"
#include "kernels/row_sums.h"

// Biases of distances, and their gradients in the order of kernels/cpu/attention_data.h.
namespace troupe::kernels::cuda {
namespace {

constexpr int query_rows = 16;  // Queries whose scores are made at once.
constexpr int of_block = 64;    // Distances of a block of threads.
constexpr int keys_at_once = 64;
static_assert(query_rows + of_block <= 2 * keys_at_once && rows_in_piece % query_rows == 0);

struct Spread {
  AttentionShape shape;
  const float* biases;
  float* to;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t head = i / shape.diagonals(), diagonal = i % shape.diagonals();
    to[i] = biases[bucket_of(shape, diagonal - shape.length + 1) * shape.heads + head];
  }
};

/// The sums along the distances that a piece of queries has, [batch, heads, pieces, columns].
/// Column j has the distance j - (rows_in_piece - 1) - the piece's first query.
struct Pieces {
  float* sums;
  std::int64_t count, columns, blocks;
};

__global__ void sum_diagonals(Attention all, Pieces pieces) {
  using Scores = Products<query_rows, keys_at_once, threads_in_block>;
  __shared__ typename Scores::Shared shared;
  __shared__ float ds[query_rows][2 * keys_at_once];
  __shared__ float dots[query_rows];
  const auto& shape = all.shape;
  const std::int64_t block = blockIdx.x % pieces.blocks;
  const std::int64_t piece = blockIdx.x / pieces.blocks % pieces.count;
  const std::int64_t of_head = blockIdx.x / pieces.blocks / pieces.count;
  const std::int64_t batch = of_head / shape.heads, head = of_head % shape.heads;
  const std::int64_t kv_head = all.kv_head_of(head), width = shape.width;
  const std::int64_t column = block * of_block + threadIdx.x, begin = piece * rows_in_piece;
  const float* const logsumexp = all.logsumexp + of_head * shape.length;
  const unsigned lane = threadIdx.x % lanes, group = threadIdx.x / lanes;
  float sum = 0;
  for (std::int64_t done = 0; done < rows_in_piece; done += query_rows) {
    const std::int64_t first = begin + done;
    const std::int64_t queries = lesser(query_rows, shape.length - first);
    // The first query's key at the first distance, or the first key.
    const std::int64_t first_key = greater(done + block * of_block - (rows_in_piece - 1), 0);
    if (queries <= 0 || first_key >= shape.key_count()) break;
    const std::int64_t position = first + (group < queries ? group : 0);
    const float dot =
        dot_of(all.out.data + all.at(all.out.row, batch, head, position),
               all.dout.data + all.at(all.dout.row, batch, head, position), width, lane);
    if (lane == 0) dots[group] = dot;
    __syncthreads();
    for (int tile = 0; tile < 2 * keys_at_once; tile += keys_at_once) {
      const std::int64_t at = first_key + tile, left = shape.key_count() - at;
      const Scores scores(shared, all.rows(all.q, batch, head, first, queries),
                          all.key_rows(all.k, batch, kv_head, at, left), width);
      const Scores dps(shared, all.rows(all.dout, batch, head, first, queries),
                       all.key_rows(all.v, batch, kv_head, at, left), width);
      const std::int64_t c = Scores::column();
      for (int i = 0; i < Scores::of_thread; ++i) {
        const std::int64_t r = Scores::row(i);
        if (r >= queries || c >= left) continue;
        const QueryOf query = all.query_of(batch, head, first + r);
        const KeyRange seen = all.seen_by(batch, query.position, at, lesser(left, keys_at_once));
        ds[r][tile + c] =
            seen.begin <= c && c < seen.end
                ? all.soften(query, at + c, scores[i], dps[i], logsumexp[first + r], dots[r]).ds
                : 0.0f;
      }
    }
    __syncthreads();
    if (threadIdx.x < of_block)
      for (std::int64_t r = 0; r < queries; ++r) {
        const std::int64_t key = done + r + column - (rows_in_piece - 1);
        if (key >= 0 && key < shape.key_count()) sum += ds[r][key - first_key];
      }
    __syncthreads();
  }
  if (threadIdx.x < of_block && column < pieces.columns)
    pieces.sums[(of_head * pieces.count + piece) * pieces.columns + column] = sum;
}

struct Buckets {
  AttentionShape shape;
  std::int32_t* to;
  __device__ void operator()(std::int64_t i) const {
    to[i] = bucket_of(shape, i - shape.length + 1);
  }
};

/// Adds the sums of a bucket's distances, one thread for each sample, bucket and head.
struct SumBuckets {
  AttentionShape shape;
  Pieces pieces;
  const std::int32_t* buckets;
  float* to;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t head = i % shape.heads, bucket = i / shape.heads % shape.buckets;
    const std::int64_t batch = i / shape.heads / shape.buckets;
    const float* const own =
        pieces.sums + (batch * shape.heads + head) * pieces.count * pieces.columns;
    float sum = 0;
    for (std::int64_t diagonal = 0; diagonal < shape.diagonals(); ++diagonal) {
      if (buckets[diagonal] != bucket) continue;
      float along = 0;
      for (std::int64_t piece = 0; piece < pieces.count; ++piece) {
        const std::int64_t column = diagonal - shape.length + 1 + (piece + 1) * rows_in_piece - 1;
        if (column >= 0 && column < pieces.columns) along += own[piece * pieces.columns + column];
      }
      sum += along;
    }
    to[i] = sum;
  }
};

struct SumSamples {
  std::int64_t batch, count;
  const float* from;
  float factor;
  float* to;

  __device__ void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) sum += from[b * count + i];
    to[i] = sum * factor;
  }
};

}  // namespace

Tensor spread_biases(Stream& stream, const AttentionShape& shape, const float* biases) {
  if (shape.buckets == 0) return {};
  Tensor spread = stream.make({shape.heads, shape.diagonals()});
  for_elements(stream, spread.count(), Spread{shape, biases, spread.f32()});
  return spread;
}

void attend_back_to_biases(Stream& stream, const Attention& all, float* dbiases) {
  const AttentionShape& shape = all.shape;
  const std::int64_t heads = shape.batch * shape.heads, count = shape.buckets * shape.heads;
  Pieces pieces = {nullptr, blocks_for(shape.length, rows_in_piece).x,
                   shape.key_count() + rows_in_piece - 1, 0};
  pieces.blocks = blocks_for(pieces.columns, of_block).x;
  Tensor sums = stream.make({heads, pieces.count, pieces.columns});
  Tensor buckets = stream.make({shape.diagonals()}, DType::i32);
  Tensor of_samples = stream.make({shape.batch, count});
  pieces.sums = sums.f32();
  for_elements(stream, buckets.count(), Buckets{shape, buckets.data<std::int32_t>()});
  launch(stream, dim3(static_cast<unsigned>(heads * pieces.count * pieces.blocks)),
         dim3(threads_in_block), sum_diagonals, all, pieces);
  for_elements(stream, of_samples.count(),
               SumBuckets{shape, pieces, buckets.data<std::int32_t>(), of_samples.f32()});
  for_elements(stream, count,
               SumSamples{shape.batch, count, of_samples.f32(), 1 / all.scale, dbiases});
}

}  // namespace troupe::kernels::cuda
