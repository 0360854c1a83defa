#include "kernels/norm.h"

#include <algorithm>
#include <utility>

#include "kernels/activations.h"
#include "kernels/cpu/parts/pieces.h"
#include "kernels/cpu/parts/targets.h"
#include "kernels/device_kernels.h"
#include "kernels/row_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"
#include "kernels/cpu/parts/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = FloatVector;

HWY_INLINE V constant(float value) { return hn::Set(Floats(), value); }

void layer_norm_forward_row(const float* x, const float* weight, const float* bias, float* y,
                            float* mean, float* rstd, std::int64_t columns, float eps) {
  Lanes<Floats, 1> total(0);
  total.walk(columns, [=](auto at, std::int64_t c, V(&sum)[1])
                          HWY_ATTR { sum[0] = hn::Add(sum[0], at.load(x + c)); });
  *mean = total.sum() / static_cast<float>(columns);
  const V center = constant(*mean);

  Lanes<Floats, 1> squares(0);
  squares.walk(columns, [=](auto at, std::int64_t c, V(&sum)[1]) HWY_ATTR {
    const V distance = at.or_zero(hn::Sub(at.load(x + c), center));
    sum[0] = fused(distance, distance, sum[0]);
  });
  *rstd = inverse_root(squares.sum() / static_cast<float>(columns) + eps);
  const V scale = constant(*rstd);

  each_vector(columns, [=](auto at, std::int64_t c) HWY_ATTR {
    const V normal = hn::Mul(hn::Sub(at.load(x + c), center), scale);
    at.store(fused(normal, at.load(weight + c), at.load(bias + c)), y + c);
  });
}

// dx = rstd (g - mean(g) - n mean(g n)) + more, with g = dy weight and n the normalized input.
void layer_norm_backward_row(const float* x, const float* weight, float mean, float rstd,
                             const float* dy, const float* more, float* dx, std::int64_t columns) {
  const V center = constant(mean), scale = constant(rstd);
  Lanes<Floats, 2> totals(0);
  totals.walk(columns, [=](auto at, std::int64_t c, V(&sum)[2]) HWY_ATTR {
    const V normal = hn::Mul(hn::Sub(at.load(x + c), center), scale);
    const V g = hn::Mul(at.load(dy + c), at.load(weight + c));
    sum[0] = hn::Add(sum[0], g);
    sum[1] = fused(g, normal, sum[1]);
  });
  const V mean_g = constant(totals.sum(0) / static_cast<float>(columns));
  const V minus_mean_gn = constant(-totals.sum(1) / static_cast<float>(columns));
  each_vector(columns, [=](auto at, std::int64_t c) HWY_ATTR {
    const V normal = hn::Mul(hn::Sub(at.load(x + c), center), scale);
    const V g = hn::Mul(at.load(dy + c), at.load(weight + c));
    V gradient = hn::Mul(scale, fused(normal, minus_mean_gn, hn::Sub(g, mean_g)));
    if (more) gradient = hn::Add(gradient, at.load(more + c));
    at.store(gradient, dx + c);
  });
}

void rms_norm_forward_row(const float* x, const float* weight, float* y, float* rstd,
                          std::int64_t columns, float eps) {
  Lanes<Floats, 1> squares(0);
  squares.walk(columns, [=](auto at, std::int64_t c, V(&sum)[1]) HWY_ATTR {
    const V input = at.load(x + c);
    sum[0] = fused(input, input, sum[0]);
  });
  *rstd = inverse_root(squares.sum() / static_cast<float>(columns) + eps);
  const V scale = constant(*rstd);
  each_vector(columns, [=](auto at, std::int64_t c) HWY_ATTR {
    at.store(hn::Mul(hn::Mul(at.load(x + c), scale), at.load(weight + c)), y + c);
  });
}

// dx = rstd (g - n mean(g n)) + more, with g and n as in layer norm.
void rms_norm_backward_row(const float* x, const float* weight, float rstd, const float* dy,
                           const float* more, float* dx, std::int64_t columns) {
  const V scale = constant(rstd);
  Lanes<Floats, 1> total(0);
  total.walk(columns, [=](auto at, std::int64_t c, V(&sum)[1]) HWY_ATTR {
    const V normal = hn::Mul(at.load(x + c), scale);
    sum[0] = fused(hn::Mul(at.load(dy + c), at.load(weight + c)), normal, sum[0]);
  });
  const V minus_mean_gn = constant(-total.sum() / static_cast<float>(columns));
  each_vector(columns, [=](auto at, std::int64_t c) HWY_ATTR {
    const V normal = hn::Mul(at.load(x + c), scale);
    const V g = hn::Mul(at.load(dy + c), at.load(weight + c));
    V gradient = hn::Mul(scale, fused(normal, minus_mean_gn, g));
    if (more) gradient = hn::Add(gradient, at.load(more + c));
    at.store(gradient, dx + c);
  });
}

// The functions below sum the rows (kernels/row_sums.h) of at most `columns_per_piece` columns,
// which begin at the pointers. Rows are `stride` elements apart.

/// Sums of up to `columns_per_piece` columns: those of the current piece of rows, and the totals.
class ColumnSums {
 public:
  /// Returns the sums of the current piece of rows.
  float* of_piece() { return piece_; }
  void end_piece(std::int64_t columns) {
    for (std::int64_t c = 0; c < columns; ++c) total_[c] += std::exchange(piece_[c], 0.0f);
  }
  void add_to(float* to, std::int64_t columns) const {
    for (std::int64_t c = 0; c < columns; ++c) to[c] += total_[c];
  }

 private:
  HWY_ALIGN float piece_[columns_per_piece] = {};
  float total_[columns_per_piece] = {};
};

void layer_norm_backward_columns(const float* x, const float* mean, const float* rstd,
                                 const float* dy, float* dweight, float* dbias, std::int64_t rows,
                                 std::int64_t columns, std::int64_t stride) {
  ColumnSums weight_sums, bias_sums;
  float* const dw = weight_sums.of_piece();
  float* const db = bias_sums.of_piece();
  for (std::int64_t first = 0; first < rows; first += rows_in_piece) {
    const std::int64_t end = std::min(rows, first + rows_in_piece);
    for (std::int64_t r = first; r < end; ++r, x += stride, dy += stride) {
      const V center = constant(mean[r]), scale = constant(rstd[r]);
      each_vector(columns, [=](auto at, std::int64_t c) HWY_ATTR {
        const V normal = hn::Mul(hn::Sub(at.load(x + c), center), scale);
        const V gradient = at.load(dy + c);
        at.store(fused(gradient, normal, at.load(dw + c)), dw + c);
        at.store(hn::Add(gradient, at.load(db + c)), db + c);
      });
    }
    weight_sums.end_piece(columns);
    bias_sums.end_piece(columns);
  }
  weight_sums.add_to(dweight, columns);
  bias_sums.add_to(dbias, columns);
}

void rms_norm_backward_columns(const float* x, const float* rstd, const float* dy, float* dweight,
                               std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  ColumnSums weight_sums;
  float* const dw = weight_sums.of_piece();
  for (std::int64_t first = 0; first < rows; first += rows_in_piece) {
    const std::int64_t end = std::min(rows, first + rows_in_piece);
    for (std::int64_t r = first; r < end; ++r, x += stride, dy += stride) {
      const V scale = constant(rstd[r]);
      each_vector(columns, [=](auto at, std::int64_t c) HWY_ATTR {
        const V normal = hn::Mul(at.load(x + c), scale);
        at.store(fused(at.load(dy + c), normal, at.load(dw + c)), dw + c);
      });
    }
    weight_sums.end_piece(columns);
  }
  weight_sums.add_to(dweight, columns);
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels {

using namespace cpu;

HWY_EXPORT(layer_norm_forward_row);
HWY_EXPORT(layer_norm_backward_row);
HWY_EXPORT(layer_norm_backward_columns);
HWY_EXPORT(rms_norm_forward_row);
HWY_EXPORT(rms_norm_backward_row);
HWY_EXPORT(rms_norm_backward_columns);

void layer_norm_forward(Stream& stream, const float* x, const float* weight, const float* bias,
                        float* y, float* mean, float* rstd, std::int64_t rows, std::int64_t columns,
                        float eps) {
  if (const auto* there = kernels_of(stream))
    return there->layers.layer_norm_forward(stream, x, weight, bias, y, mean, rstd, rows, columns,
                                            eps);
  for_rows(stream, rows, columns, [=](std::int64_t r) {
    HWY_DYNAMIC_DISPATCH(layer_norm_forward_row)
    (x + r * columns, weight, bias, y + r * columns, mean + r, rstd + r, columns, eps);
  });
}

void layer_norm_forward_of_sum(Stream& stream, const float* a, const float* b, float* sum,
                               const float* weight, const float* bias, float* y, float* mean,
                               float* rstd, std::int64_t rows, std::int64_t columns, float eps) {
  if (const auto* there = kernels_of(stream))
    return there->layers.layer_norm_forward_of_sum(stream, a, b, sum, weight, bias, y, mean, rstd,
                                                   rows, columns, eps);
  add(stream, a, b, sum, rows * columns);
  layer_norm_forward(stream, sum, weight, bias, y, mean, rstd, rows, columns, eps);
}

void layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                               const float* mean, const float* rstd, const float* dy,
                               const float* more, float* dx, std::int64_t rows,
                               std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->layers.layer_norm_backward_input(stream, x, weight, mean, rstd, dy, more, dx,
                                                   rows, columns);
  for_rows(stream, rows, columns, [=](std::int64_t r) {
    HWY_DYNAMIC_DISPATCH(layer_norm_backward_row)
    (x + r * columns, weight, mean[r], rstd[r], dy + r * columns,
     more ? more + r * columns : nullptr, dx + r * columns, columns);
  });
}

void layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                const float* rstd, const float* dy, float* dweight, float* dbias,
                                std::int64_t rows, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->layers.layer_norm_backward_weight(stream, x, mean, rstd, dy, dweight, dbias, rows,
                                                    columns);
  for_pieces(stream, columns, columns_per_piece, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(layer_norm_backward_columns)
    (x + first, mean, rstd, dy + first, dweight + first, dbias + first, rows, size, columns);
  });
}

void rms_norm_forward(Stream& stream, const float* x, const float* weight, float* y, float* rstd,
                      std::int64_t rows, std::int64_t columns, float eps) {
  if (const auto* there = kernels_of(stream))
    return there->layers.rms_norm_forward(stream, x, weight, y, rstd, rows, columns, eps);
  for_rows(stream, rows, columns, [=](std::int64_t r) {
    HWY_DYNAMIC_DISPATCH(rms_norm_forward_row)
    (x + r * columns, weight, y + r * columns, rstd + r, columns, eps);
  });
}

void rms_norm_forward_of_sum(Stream& stream, const float* a, const float* b, float* sum,
                             const float* weight, float* y, float* rstd, std::int64_t rows,
                             std::int64_t columns, float eps) {
  if (const auto* there = kernels_of(stream))
    return there->layers.rms_norm_forward_of_sum(stream, a, b, sum, weight, y, rstd, rows, columns,
                                                 eps);
  add(stream, a, b, sum, rows * columns);
  rms_norm_forward(stream, sum, weight, y, rstd, rows, columns, eps);
}

void rms_norm_backward_input(Stream& stream, const float* x, const float* weight, const float* rstd,
                             const float* dy, const float* more, float* dx, std::int64_t rows,
                             std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->layers.rms_norm_backward_input(stream, x, weight, rstd, dy, more, dx, rows,
                                                 columns);
  for_rows(stream, rows, columns, [=](std::int64_t r) {
    HWY_DYNAMIC_DISPATCH(rms_norm_backward_row)
    (x + r * columns, weight, rstd[r], dy + r * columns, more ? more + r * columns : nullptr,
     dx + r * columns, columns);
  });
}

void rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd, const float* dy,
                              float* dweight, std::int64_t rows, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->layers.rms_norm_backward_weight(stream, x, rstd, dy, dweight, rows, columns);
  for_pieces(stream, columns, columns_per_piece, [=](std::int64_t first, std::int64_t size) {
    HWY_DYNAMIC_DISPATCH(rms_norm_backward_columns)
    (x + first, rstd, dy + first, dweight + first, rows, size, columns);
  });
}

}  // namespace troupe::kernels

#endif
