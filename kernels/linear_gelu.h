#pragma once

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/activations.h"
#include "kernels/linear.h"

namespace troupe::kernels {

/// The results of a linear layer followed by gelu().
struct LinearGelu {
  Tensor pre;  // x w + bias, in the precision's activation_type(), for the backward pass.
  Tensor y;    // gelu(pre), as an operand.
};

/// Computes gelu(x w + bias). `x` is an operand of the matrix's precision; `bias` is not null.
/// Tensor cores round pre, y and perhaps the bias, and fuse gelu() if one kernel can.
LinearGelu linear_gelu_forward(Stream& stream, const PackedLinear& w, const Tensor& x,
                               const float* bias, Gelu form);

/// Returns the gradient of pre, (dy w^T) gelu'(pre). `w` and the operand `dy` belong to the linear
/// layer that follows gelu().
LinearGradient linear_gelu_backward(Stream& stream, const PackedLinear& w, const Tensor& dy,
                                    Gelu form, const Tensor& pre);

}  // namespace troupe::kernels
