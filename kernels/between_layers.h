#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/rope.h"

/// Kernels of what layers give each other: tensors in fp32, or where tensor cores compute in their
/// type of 16 bits (activation_type()). Weights, moments, and what is added up from layer to layer
/// are in fp32. In 16 bits each makes what the kernel for fp32 makes of the same numbers, and
/// rounds it once.
namespace troupe::kernels {

/// y in either type. `moments` are [2, rows]: the means, then the inverse roots of the variances.
void layer_norm(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, Tensor& y, Tensor& moments);
/// dy in either type.
void layer_norm_back(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& moments,
                     const Tensor& dy, Tensor& dx);
void layer_norm_back_to_weight(Stream& stream, const Tensor& x, const Tensor& moments,
                               const Tensor& dy, Tensor& dweight, Tensor& dbias);

/// Likewise. `rstd` are the inverse roots of the mean squares.
void rms_norm(Stream& stream, const Tensor& x, const Tensor& weight, float eps, Tensor& y,
              Tensor& rstd);
void rms_norm_back(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                   const Tensor& dy, Tensor& dx);
void rms_norm_back_to_weight(Stream& stream, const Tensor& x, const Tensor& rstd, const Tensor& dy,
                             Tensor& dweight);

/// y = a + b; a in either type.
void sum_of(Stream& stream, const Tensor& a, const Tensor& b, Tensor& y);

// All tensors of one type.

void relu(Stream& stream, const Tensor& x, Tensor& y);
void relu_back(Stream& stream, const Tensor& y, const Tensor& dy, Tensor& dx);
void swiglu(Stream& stream, const Tensor& gate, const Tensor& up, Tensor& y);
void swiglu_back(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& dy,
                 Tensor& dgate, Tensor& dup);
/// rope() of x: [batch, length, heads * width].
void rotate(Stream& stream, Rotation rotation, Tensor& x, std::int64_t heads, double theta);

/// The losses in fp32; the gradient of the logits takes their place where it is wanted.
enum class LogitGradient : std::uint8_t { unwanted, wanted };
void cross_entropy(Stream& stream, Tensor& logits, const Tensor& targets, Tensor& losses,
                   LogitGradient gradient, float scale);

}  // namespace troupe::kernels
