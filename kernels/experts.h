#pragma once

#include <cstdint>
#include <span>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/linear.h"

/// Kernels of a mixture of experts: each token goes to the `top` experts that a router prefers.
/// The rows that experts compute are sorted by (expert, token). There are always tokens * top rows:
/// only the bounds between experts depend on the numbers, so memory is fixed and no row is dropped.
namespace troupe::kernels {

/// A GPU sorts rows in so many pieces at once.
constexpr std::int64_t experts_sorted_in = 32;

struct RouterShape {
  std::int64_t tokens = 0;
  std::int64_t experts = 0;
  std::int64_t top = 1;      // The experts of a token, from 1 to `experts`.
  bool renormalise = false;  // Whether the weights of a token's experts are divided by their sum.

  constexpr std::int64_t rows() const { return tokens * top; }
};

/// The choice of experts for some tokens.
struct Routes {
  float* probabilities = nullptr;  // [tokens, experts]: the softmax of the logits.
  float* logsumexp = nullptr;      // [tokens]: that of the logits.
  std::int32_t* chosen = nullptr;  // [tokens, top]: experts, the most probable first.
  float* weights = nullptr;        // [tokens, top]: the weights of the experts' results.
  std::int32_t* places = nullptr;  // [tokens, top]: the row that an expert computes for a token.
  std::int32_t* tokens = nullptr;  // [tokens * top]: the token of each row.
  std::int32_t* bounds = nullptr;  // [experts + 1]: the first row of each expert, and the end.
};

/// Chooses experts by softmax(logits). Of equal probabilities the lower expert comes first.
void route(Stream& stream, const RouterShape& shape, const float* logits, const Routes& routes);

/// The factors of a router's own losses: the balance loss experts * sum_e f_e P_e, where a share
/// f_e of the tokens chose e and P_e is its mean probability, and the mean of logsumexp^2.
struct RouterLosses {
  float balance = 0;
  float z = 0;
};
/// dlogits = the gradient through the weights of the experts, plus those of the router's losses.
void route_backward(Stream& stream, const RouterShape& shape, const Routes& routes,
                    const float* dweights, const RouterLosses& losses, float* dlogits);

/// y[t] = sum over ranks j, ascending, of weights[t, j] rows[places[t, j]]. Without weights all
/// are 1.
void sum_experts(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                 const float* weights, const float* rows, float* y, std::int64_t columns);
/// drows[places[t, j]] = weights[t, j] dy[t], and dweights[t, j] = dy[t] . rows[places[t, j]].
void sum_experts_backward(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                          const float* weights, const float* rows, const float* dy, float* drows,
                          float* dweights, std::int64_t columns);

/// The matrices of the experts, all of one shape and precision.
using ExpertMatrices = std::span<const PackedLinear* const>;

/// Computes y = x w_e for the rows of each expert e, and dx = dy w_e^T. x and dy are operands, y
/// and dx are fp32. Each row has the bits of linear_forward() and linear_backward_input() in fp32
/// and on cores. In 16 bits tensor cores multiply if the sizes of the matrices are multiples of 8.
/// A row's results never depend on the other rows.
void experts_forward(Stream& stream, ExpertMatrices w, const Tensor& bounds, const Tensor& x,
                     Tensor& y);
void experts_backward_input(Stream& stream, ExpertMatrices w, const Tensor& bounds,
                            const Tensor& dy, Tensor& dx);

/// The gradient of an expert's matrix.
struct ExpertGradient {
  float* dw = nullptr;  // Null: nobody wants it.
  bool begins = false;  // Whether it starts with zeros, and dw is not read.
};
/// Computes dw_e (+)= x^T dy over the rows of each expert, tokens ascending. An expert without rows
/// gets zeros, or keeps what it has.
void experts_backward_weight(Stream& stream, const LinearShape& shape,
                             std::span<const ExpertGradient> gradients, const Tensor& bounds,
                             const Tensor& x, const Tensor& dy);

}  // namespace troupe::kernels
