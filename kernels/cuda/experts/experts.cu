#include <cstdint>

#include "kernels/cuda/experts/launches.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/product_tile.cuh"
#include "kernels/cuda/tile.cuh"
#include "kernels/experts.h"

namespace troupe::kernels::cuda {
namespace {

/// A thread chooses the experts of a token.
struct Choose {
  RouterShape shape;
  const float* logits;
  Routes routes;

  __device__ void operator()(std::int64_t t) const {
    const float* const of_token = logits + t * shape.experts;
    float* const probabilities = routes.probabilities + t * shape.experts;
    float most = of_token[0];
    for (std::int64_t e = 1; e < shape.experts; ++e) most = most < of_token[e] ? of_token[e] : most;
    float sum = 0;
    for (std::int64_t e = 0; e < shape.experts; ++e) {
      probabilities[e] = exp_nonpositive(of_token[e] - most);
      sum += probabilities[e];
    }
    for (std::int64_t e = 0; e < shape.experts; ++e) probabilities[e] /= sum;
    routes.logsumexp[t] = most + log_of(sum);
    choose(probabilities, routes.chosen + t * shape.top, routes.weights + t * shape.top);
  }

  __device__ void choose(const float* probabilities, std::int32_t* chosen, float* weights) const {
    float sum = 0;
    for (std::int64_t j = 0; j < shape.top; ++j) {
      std::int32_t best = -1;
      for (std::int32_t e = 0; e < shape.experts; ++e) {
        bool is_free = true;
        for (std::int64_t i = 0; i < j; ++i) is_free = is_free && chosen[i] != e;
        if (is_free && (best < 0 || probabilities[e] > probabilities[best])) best = e;
      }
      chosen[j] = best;
      weights[j] = probabilities[best];
      sum += weights[j];
    }
    for (std::int64_t j = 0; shape.renormalise && j < shape.top; ++j) weights[j] /= sum;
  }
};

/// The rows in this many pieces are sorted at once, by a thread for each expert and piece.
constexpr std::int64_t pieces_of_rows = experts_sorted_in;

/// Counts the rows of each expert in each piece of the rows.
struct Count {
  RouterShape shape;
  const std::int32_t* chosen;
  std::int32_t* counts;  // [experts, pieces]

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t expert = i / pieces_of_rows, piece = i % pieces_of_rows;
    const std::int64_t end = (piece + 1) * shape.rows() / pieces_of_rows;
    std::int32_t count = 0;
    for (std::int64_t r = piece * shape.rows() / pieces_of_rows; r < end; ++r)
      count += chosen[r] == expert;
    counts[i] = count;
  }
};

/// Gives each row its place: behind the rows of lower experts, and behind earlier ones of its own.
struct Place {
  RouterShape shape;
  Routes routes;
  const std::int32_t* counts;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t expert = i / pieces_of_rows, piece = i % pieces_of_rows;
    std::int32_t place = 0;
    for (std::int64_t before = 0; before < i; ++before) place += counts[before];
    if (piece == 0) routes.bounds[expert] = place;
    if (i == 0) routes.bounds[shape.experts] = static_cast<std::int32_t>(shape.rows());
    const std::int64_t end = (piece + 1) * shape.rows() / pieces_of_rows;
    for (std::int64_t r = piece * shape.rows() / pieces_of_rows; r < end; ++r) {
      if (routes.chosen[r] != expert) continue;
      routes.places[r] = place;
      routes.tokens[place] = static_cast<std::int32_t>(r / shape.top);
      ++place;
    }
  }
};

/// A thread computes the gradient of a token's logits.
struct RouteBack {
  RouterShape shape;
  Routes routes;
  const float* dweights;
  Changing<RouterLosses> losses;
  float* dlogits;

  __device__ void operator()(std::int64_t t) const {
    const RouterLosses own = losses.read();
    const float* const probabilities = routes.probabilities + t * shape.experts;
    const std::int32_t* const chosen = routes.chosen + t * shape.top;
    const float* const weights = routes.weights + t * shape.top;
    const float* const dw = dweights + t * shape.top;
    float* const to = dlogits + t * shape.experts;
    const auto tokens = static_cast<float>(shape.tokens);
    const float balance = own.balance * static_cast<float>(shape.experts) / tokens;
    for (std::int64_t e = 0; e < shape.experts; ++e)
      to[e] = balance * (static_cast<float>(routes.bounds[e + 1] - routes.bounds[e]) / tokens);
    float sum = 0, inner = 0;
    for (std::int64_t j = 0; j < shape.top; ++j) {
      sum += probabilities[chosen[j]];
      inner += weights[j] * dw[j];
    }
    for (std::int64_t j = 0; j < shape.top; ++j)
      to[chosen[j]] += shape.renormalise ? (dw[j] - inner) / sum : dw[j];
    float mean = 0;
    for (std::int64_t e = 0; e < shape.experts; ++e) mean += probabilities[e] * to[e];
    const float slope = own.z * 2 / tokens * routes.logsumexp[t];
    for (std::int64_t e = 0; e < shape.experts; ++e)
      to[e] = probabilities[e] * ((to[e] - mean) + slope);
  }
};

struct SumOfExperts {
  std::int64_t top, columns;
  const std::int32_t* places;
  const float* weights;
  const float* rows;
  float* y;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t t = i / columns, c = i % columns;
    float sum = 0;
    for (std::int64_t j = t * top; j < (t + 1) * top; ++j)
      sum += (weights ? weights[j] : 1.0f) * rows[places[j] * columns + c];
    y[i] = sum;
  }
};

struct SumOfExpertsBack {
  std::int64_t top, columns;
  const std::int32_t* places;
  const float* weights;
  const float* rows;
  const float* dy;
  float* drows;
  float* dweights;

  __device__ void operator()(std::int64_t i, bool is_row, unsigned lane) const {
    const float* const from = dy + i / top * columns;
    const std::int64_t place = places[i] * columns;
    const float weight = weights[i];
    float sum = 0;
    for (std::int64_t c = lane; c < columns; c += lanes) {
      sum += from[c] * rows[place + c];
      if (is_row) drows[place + c] = weight * from[c];
    }
    sum = sum_of_lanes(sum);
    if (is_row && lane == 0) dweights[i] = sum;
  }
};

constexpr int quads = 1;
constexpr int side = tile<quads>;

/// Computes a tile of an expert's rows.
template <class Number>
__global__ void __launch_bounds__(threads_in_tile, 3)
    multiply_expert(DeviceExperts<Number> p, Matrices<Number> matrices, int experts,
                    bool has_aligned_sums) {
  alignas(most_access) __shared__ Part<quads> a[2];
  alignas(most_access) __shared__ Part<quads> b[2];
  const auto rows = rows_of_block(p.bounds, experts, side);
  if (rows.expert == experts) return;
  const auto at = thread_in_tile();
  const std::int64_t first_column = std::int64_t{blockIdx.x} * side;
  Sums<quads> sums = {};
  Reader<quads, Number> of_a(p.x, p.depth, 1, rows.first, rows.end);
  Reader<quads, Number> of_b(matrices.of[rows.expert], p.column_stride, p.row_stride, first_column,
                             p.columns);
  add_up(of_a, of_b, a, b, p.depth, at, sums);
  each_quad(sums, at, rows.first, first_column,
            [&](std::int64_t row, std::int64_t column, const float* some) {
              if (row < rows.end)
                write_quad(p.y + row * p.columns, column, p.columns, some, has_aligned_sums);
            });
}

/// Computes a tile of the gradient of an expert's matrix. Experts lie along y, and tiles along x.
template <class Number>
__global__ void __launch_bounds__(threads_in_tile, 3)
    gradient_of_expert(DeviceExpertGradients<Number> p, Gradients gradients) {
  alignas(most_access) __shared__ Part<quads> a[2];
  alignas(most_access) __shared__ Part<quads> b[2];
  float* const dw = gradients.of[blockIdx.y];
  const bool begins = (gradients.begin >> blockIdx.y & 1) != 0;
  const std::int64_t begin = p.bounds[blockIdx.y], depth = p.bounds[blockIdx.y + 1] - begin;
  if (!dw || (depth == 0 && !begins)) return;
  const auto at = thread_in_tile();
  const std::int64_t across = (p.b_columns + side - 1) / side;
  const std::int64_t first_row = blockIdx.x / across * side,
                     first_column = blockIdx.x % across * side;
  Sums<quads> sums;
  each_quad(sums, at, first_row, first_column,
            [&](std::int64_t row, std::int64_t column, float* some) {
              for (int i = 0; i < quad; ++i) {
                const bool starts = !begins && row < p.a_columns && column + i < p.b_columns;
                some[i] = starts ? dw[row * p.b_columns + column + i] : 0.0f;
              }
            });
  if (depth > 0) {
    Reader<quads, Number> of_a(p.a + begin * p.a_columns, 1, p.a_columns, first_row, p.a_columns);
    Reader<quads, Number> of_b(p.b + begin * p.b_columns, 1, p.b_columns, first_column,
                               p.b_columns);
    add_up(of_a, of_b, a, b, depth, at, sums);
  }
  each_quad(sums, at, first_row, first_column,
            [&](std::int64_t row, std::int64_t column, const float* some) {
              if (row < p.a_columns)
                write_quad(dw + row * p.b_columns, column, p.b_columns, some, false);
            });
}

}  // namespace

void route(Stream& stream, const RouterShape& shape, const float* logits, const Routes& routes) {
  for_elements(stream, shape.tokens, Choose{shape, logits, routes});
  const std::int64_t counted = shape.experts * pieces_of_rows;
  Tensor counts = stream.make({counted}, DType::i32);
  auto* const there = counts.data<std::int32_t>();
  for_elements(stream, counted, Count{shape, routes.chosen, there});
  for_elements(stream, counted, Place{shape, routes, there});
}

void route_backward(Stream& stream, const RouterShape& shape, const Routes& routes,
                    const float* dweights, const RouterLosses& losses, float* dlogits) {
  for_elements(stream, shape.tokens,
               RouteBack{shape, routes, dweights, queue_of(stream).changing(losses), dlogits});
}

void sum_experts(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                 const float* weights, const float* rows, float* y, std::int64_t columns) {
  for_elements(stream, shape.tokens * columns,
               SumOfExperts{shape.top, columns, places, weights, rows, y});
}

void sum_experts_backward(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                          const float* weights, const float* rows, const float* dy, float* drows,
                          float* dweights, std::int64_t columns) {
  for_rows(stream, shape.rows(),
           SumOfExpertsBack{shape.top, columns, places, weights, rows, dy, drows, dweights});
}

template <class Number>
void multiply_experts(Stream& stream, const DeviceExperts<Number>& product,
                      std::span<const Number* const> matrices) {
  const bool has_aligned_sums = product.columns % quad == 0 && are_aligned(product.y);
  each_launch(product, matrices, side,
              [&](const auto& part, const auto& some, int experts, unsigned tiles) {
                launch(stream, dim3(blocks_for(product.columns, side).x, tiles),
                       dim3(threads_in_tile), multiply_expert<Number>, part, some, experts,
                       has_aligned_sums);
              });
}
template void multiply_experts(Stream&, const DeviceExperts<float>&, std::span<const float* const>);
template void multiply_experts(Stream&, const DeviceExperts<Float16>&,
                               std::span<const Float16* const>);
template void multiply_experts(Stream&, const DeviceExperts<BFloat16>&,
                               std::span<const BFloat16* const>);

template <class Number>
void gradients_of_experts(Stream& stream, const DeviceExpertGradients<Number>& product,
                          std::span<const ExpertGradient> gradients) {
  const unsigned tiles =
      blocks_for(product.b_columns, side).x * blocks_for(product.a_columns, side).x;
  each_launch(product, gradients, [&](const auto& part, const Gradients& some, unsigned experts) {
    launch(stream, dim3(tiles, experts), dim3(threads_in_tile), gradient_of_expert<Number>, part,
           some);
  });
}
template void gradients_of_experts(Stream&, const DeviceExpertGradients<float>&,
                                   std::span<const ExpertGradient>);
template void gradients_of_experts(Stream&, const DeviceExpertGradients<Float16>&,
                                   std::span<const ExpertGradient>);
template void gradients_of_experts(Stream&, const DeviceExpertGradients<BFloat16>&,
                                   std::span<const ExpertGradient>);

}  // namespace troupe::kernels::cuda
