#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/element_loss.h"
#include "kernels/rope.h"
#include "kernels/softmax_cross_entropy.h"

/// Kernels for the activations between layers: tensors in fp32, or in the 16-bit type of tensor
/// cores (activation_type()). Weights, moments and the residual sum from layer to layer are in
/// fp32. In 16 bits each kernel computes as in fp32 and rounds each result once.
namespace troupe::kernels {

/// y may have either type. `moments` is [2, rows]: means, then inverse roots of variances.
void layer_norm(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, Tensor& y, Tensor& moments);
/// sum = a + b, and layer_norm() of the sum. a and y may have either type.
void layer_norm_of_sum(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& weight,
                       const Tensor& bias, float eps, Tensor& sum, Tensor& y, Tensor& moments);
/// dx = the gradient of x, plus `more` unless that is empty. dy may have either type. `rounded` =
/// dx in 16 bits, unless it is empty.
void layer_norm_back(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& moments,
                     const Tensor& dy, const Tensor& more, Tensor& dx, Tensor& rounded);
void layer_norm_back_to_weight(Stream& stream, const Tensor& x, const Tensor& moments,
                               const Tensor& dy, Tensor& dweight, Tensor& dbias);

/// y and dy may have either type. `rstd` holds the inverse roots of the mean squares.
void rms_norm(Stream& stream, const Tensor& x, const Tensor& weight, float eps, Tensor& y,
              Tensor& rstd);
void rms_norm_of_sum(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& weight,
                     float eps, Tensor& sum, Tensor& y, Tensor& rstd);
void rms_norm_back(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                   const Tensor& dy, const Tensor& more, Tensor& dx, Tensor& rounded);
void rms_norm_back_to_weight(Stream& stream, const Tensor& x, const Tensor& rstd, const Tensor& dy,
                             Tensor& dweight);

/// y = a + b; a may have either type.
void sum_of(Stream& stream, const Tensor& a, const Tensor& b, Tensor& y);

// The tensors of each call below have one type.

void relu(Stream& stream, const Tensor& x, Tensor& y);
void relu_back(Stream& stream, const Tensor& y, const Tensor& dy, Tensor& dx);
void swiglu(Stream& stream, const Tensor& gate, const Tensor& up, Tensor& y);
void swiglu_back(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& dy,
                 Tensor& dgate, Tensor& dup);
/// Applies rope() to x: [batch, length, heads * width].
void rotate(Stream& stream, Rotation rotation, Tensor& x, std::int64_t heads, const RopeForm& form,
            std::int64_t first = 0);

/// Whether cross_entropy() overwrites the logits with their gradient. Losses are always in fp32.
enum class LogitGradient : std::uint8_t { unwanted, wanted };
void cross_entropy(Stream& stream, Tensor& logits, const Tensor& targets, Tensor& losses,
                   LogitGradient gradient, float scale, const CrossEntropyForm& form = {});
/// Computes the loss of each number of z. Its target, in fp32, has the same place in `targets`.
/// `dz` may be empty: then only losses are wanted.
void element_losses(Stream& stream, ElementLoss loss, const Tensor& z, const Tensor& targets,
                    Tensor& losses, Tensor& dz, float scale);

}  // namespace troupe::kernels
