#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

template <class Number>
struct LayerNormForward {
  const float *x, *weight, *bias;
  Number* y;
  float *mean, *rstd;
  std::int64_t columns;
  float eps;

  __device__ void operator()(std::int64_t row, bool is_row, unsigned lane) const {
    const float* in = x + row * columns;
    float total = 0, squares = 0;
    for (std::int64_t c = lane; c < columns; c += lanes) total += in[c];
    const float center = sum_of_lanes(total) / static_cast<float>(columns);
    for (std::int64_t c = lane; c < columns; c += lanes) {
      const float distance = in[c] - center;
      squares = fmaf(distance, distance, squares);
    }
    const float scale = inverse_root(sum_of_lanes(squares) / static_cast<float>(columns) + eps);
    if (!is_row) return;
    if (lane == 0) {
      mean[row] = center;
      rstd[row] = scale;
    }
    Number* out = y + row * columns;
    for (std::int64_t c = lane; c < columns; c += lanes)
      out[c] = narrow<Number>(fmaf((in[c] - center) * scale, weight[c], bias[c]));
  }
};

// dx = rstd (g - mean(g) - n mean(g n)), with g = dy weight and n the normalized input.
template <class Number>
struct LayerNormBackwardInput {
  const float *x, *weight, *mean, *rstd;
  const Number* dy;
  float* dx;
  std::int64_t columns;

  __device__ void operator()(std::int64_t row, bool is_row, unsigned lane) const {
    const float* in = x + row * columns;
    const Number* gradient = dy + row * columns;
    const float center = mean[row], scale = rstd[row];
    float sum_g = 0, sum_gn = 0;
    for (std::int64_t c = lane; c < columns; c += lanes) {
      const float normal = (in[c] - center) * scale, g = wide(gradient[c]) * weight[c];
      sum_g += g;
      sum_gn = fmaf(g, normal, sum_gn);
    }
    const float mean_g = sum_of_lanes(sum_g) / static_cast<float>(columns);
    const float minus_mean_gn = -sum_of_lanes(sum_gn) / static_cast<float>(columns);
    if (!is_row) return;
    float* out = dx + row * columns;
    for (std::int64_t c = lane; c < columns; c += lanes) {
      const float normal = (in[c] - center) * scale, g = wide(gradient[c]) * weight[c];
      out[c] = scale * fmaf(normal, minus_mean_gn, g - mean_g);
    }
  }
};

template <class Number>
struct RmsNormForward {
  const float *x, *weight;
  Number* y;
  float* rstd;
  std::int64_t columns;
  float eps;

  __device__ void operator()(std::int64_t row, bool is_row, unsigned lane) const {
    const float* in = x + row * columns;
    float squares = 0;
    for (std::int64_t c = lane; c < columns; c += lanes) squares = fmaf(in[c], in[c], squares);
    const float scale = inverse_root(sum_of_lanes(squares) / static_cast<float>(columns) + eps);
    if (!is_row) return;
    if (lane == 0) rstd[row] = scale;
    Number* out = y + row * columns;
    for (std::int64_t c = lane; c < columns; c += lanes)
      out[c] = narrow<Number>(in[c] * scale * weight[c]);
  }
};

// dx = rstd (g - n mean(g n)), with g and n as in layer norm.
template <class Number>
struct RmsNormBackwardInput {
  const float *x, *weight, *rstd;
  const Number* dy;
  float* dx;
  std::int64_t columns;

  __device__ void operator()(std::int64_t row, bool is_row, unsigned lane) const {
    const float* in = x + row * columns;
    const Number* gradient = dy + row * columns;
    const float scale = rstd[row];
    float total = 0;
    for (std::int64_t c = lane; c < columns; c += lanes)
      total = fmaf(wide(gradient[c]) * weight[c], in[c] * scale, total);
    const float minus_mean_gn = -sum_of_lanes(total) / static_cast<float>(columns);
    if (!is_row) return;
    float* out = dx + row * columns;
    for (std::int64_t c = lane; c < columns; c += lanes)
      out[c] = scale * fmaf(in[c] * scale, minus_mean_gn, wide(gradient[c]) * weight[c]);
  }
};

/// A term of row_sums(): the gradients of weight and bias.
template <class Number>
struct LayerNormOfRow {
  const float *x, *mean, *rstd;
  const Number* dy;
  std::int64_t columns;

  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[2]) const {
    const std::int64_t i = row * columns + column;
    const float gradient = wide(dy[i]);
    sums[0] = fmaf(gradient, (x[i] - mean[row]) * rstd[row], sums[0]);
    sums[1] += gradient;
  }
};

template <class Number>
struct RmsNormOfRow {
  const float *x, *rstd;
  const Number* dy;
  std::int64_t columns;

  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[1]) const {
    const std::int64_t i = row * columns + column;
    sums[0] = fmaf(wide(dy[i]), x[i] * rstd[row], sums[0]);
  }
};

}  // namespace

template <class Number>
void Norms<Number>::layer_norm_forward(Stream& stream, const float* x, const float* weight,
                                       const float* bias, Number* y, float* mean, float* rstd,
                                       std::int64_t rows, std::int64_t columns, float eps) {
  for_rows(stream, rows, LayerNormForward<Number>{x, weight, bias, y, mean, rstd, columns, eps});
}
template <class Number>
void Norms<Number>::layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                                              const float* mean, const float* rstd,
                                              const Number* dy, float* dx, std::int64_t rows,
                                              std::int64_t columns) {
  for_rows(stream, rows, LayerNormBackwardInput<Number>{x, weight, mean, rstd, dy, dx, columns});
}
template <class Number>
void Norms<Number>::layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                               const float* rstd, const Number* dy, float* dweight,
                                               float* dbias, std::int64_t rows,
                                               std::int64_t columns) {
  row_sums(stream, RowSums<2>{{dweight, dbias}, rows, columns, nullptr},
           LayerNormOfRow<Number>{x, mean, rstd, dy, columns});
}
template <class Number>
void Norms<Number>::rms_norm_forward(Stream& stream, const float* x, const float* weight, Number* y,
                                     float* rstd, std::int64_t rows, std::int64_t columns,
                                     float eps) {
  for_rows(stream, rows, RmsNormForward<Number>{x, weight, y, rstd, columns, eps});
}
template <class Number>
void Norms<Number>::rms_norm_backward_input(Stream& stream, const float* x, const float* weight,
                                            const float* rstd, const Number* dy, float* dx,
                                            std::int64_t rows, std::int64_t columns) {
  for_rows(stream, rows, RmsNormBackwardInput<Number>{x, weight, rstd, dy, dx, columns});
}
template <class Number>
void Norms<Number>::rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd,
                                             const Number* dy, float* dweight, std::int64_t rows,
                                             std::int64_t columns) {
  row_sums(stream, RowSums<1>{{dweight}, rows, columns, nullptr},
           RmsNormOfRow<Number>{x, rstd, dy, columns});
}

template struct Norms<float>;
template struct Norms<Float16>;
template struct Norms<BFloat16>;

}  // namespace troupe::kernels::cuda
