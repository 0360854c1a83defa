#pragma once

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/activations.h"
#include "kernels/linear.h"

namespace troupe::kernels {

/// What a linear layer and the gelu() behind it give.
struct LinearGelu {
  Tensor pre;  // x w + bias, in the precision's activation_type(): the backward pass wants it.
  Tensor y;    // gelu(pre), as an operand.
};

/// `x` is an operand of the matrix's precision, `bias` not null. On tensor cores pre, y and perhaps
/// the bias are rounded, and gelu() is taken within the product where that is one kernel.
LinearGelu linear_gelu_forward(Stream& stream, const PackedLinear& w, const Tensor& x,
                               const float* bias, Gelu form);

/// The gradient of pre: (dy w^T) gelu'(pre), where `w` and `dy`, an operand, are of the linear
/// layer behind gelu().
LinearGradient linear_gelu_backward(Stream& stream, const PackedLinear& w, const Tensor& dy,
                                    Gelu form, const Tensor& pre);

}  // namespace troupe::kernels
