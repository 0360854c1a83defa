#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/combine.h"
#include "kernels/linear.h"
#include "kernels/steps.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

constexpr int newton_schulz_steps = 5;
constexpr float a = 3.4445f, b = -4.7750f, c = 2.0315f;

/// Returns a matrix with the singular vectors of x and singular values near 1, by Newton-Schulz
/// iteration (Jordan 2024): X <- a X + (b G + c G G) X with G = X X^T, or X (b G + c G G) with G =
/// X^T X, whichever G is smaller.
Tensor orthogonalized(Stream& stream, Tensor x, std::int64_t rows, std::int64_t columns) {
  using kernels::Transpose;
  const std::int64_t side = std::min(rows, columns), inner = std::max(rows, columns);
  const double norm = std::sqrt(kernels::sum_of_squares(stream, x.f32(), x.count()));
  const auto scale = static_cast<float>(1 / std::max(norm, 1e-7));
  kernels::combine(stream, scale, x.f32(), 0, x.f32(), x.f32(), x.count());

  Tensor gram = stream.make({side, side});
  Tensor square = stream.make({side, side});
  Tensor product = stream.make(x.shape());
  for (int i = 0; i < newton_schulz_steps; ++i) {
    const auto outer = rows <= columns ? Transpose::second : Transpose::first;
    kernels::matmul(stream, outer, x.f32(), x.f32(), gram.f32(), side, side, inner);
    kernels::matmul(stream, Transpose::none, gram.f32(), gram.f32(), square.f32(), side, side,
                    side);
    kernels::combine(stream, b, gram.f32(), c, square.f32(), gram.f32(), gram.count());
    if (rows <= columns)
      kernels::matmul(stream, Transpose::none, gram.f32(), x.f32(), product.f32(), rows, columns,
                      side);
    else
      kernels::matmul(stream, Transpose::none, x.f32(), gram.f32(), product.f32(), rows, columns,
                      side);
    kernels::combine(stream, a, x.f32(), 1, product.f32(), x.f32(), x.count());
  }
  return x;
}

void apply(Stream& stream, const Update& update) {
  const auto& config = update.config;
  const auto count = update.weight.count();
  const auto keep = static_cast<float>(config.momentum);
  const auto take = static_cast<float>((1 - config.momentum) * update.gradient_scale);
  const float* gradient = update.gradient.f32();
  float* momentum = update.moments[0].f32();
  kernels::combine(stream, keep, momentum, take, gradient, momentum, count);
  Tensor direction = stream.make(update.weight.shape());
  if (config.nesterov)
    kernels::combine(stream, keep, momentum, take, gradient, direction.f32(), count);
  else
    kernels::combine(stream, 1, momentum, 0, momentum, direction.f32(), count);

  const auto shape = linear_shape(update.parameter, kernels::Precision::fp32);
  const std::int64_t rows = update.weight.shape()[0];
  direction = orthogonalized(stream, std::move(direction), rows, count / rows);

  // The ratio follows the matrix's inputs and outputs, not its memory layout.
  const double ratio = static_cast<double>(shape.outputs) / static_cast<double>(shape.inputs);
  const double lr = update.lr;
  kernels::combine(stream, static_cast<float>(1 - lr * config.weight_decay), update.weight.f32(),
                   static_cast<float>(-lr * std::sqrt(std::max(1.0, ratio))), direction.f32(),
                   update.next.f32(), count);
}

constexpr std::array<std::string_view, 1> moments{"momentum"};

}  // namespace

const UpdateRule muon_rule{.moments = moments, .apply = apply, .wants_whole = true};

}  // namespace troupe::models
