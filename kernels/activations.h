#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// The exact form x (1 + erf(x / sqrt 2)) / 2, or its approximation with tanh.
enum class Gelu : std::uint8_t { erf, tanh };

/// Elementwise: y = f(x) and dx = dy f'(x). y may be x, and dx may be dy.
void gelu_forward(Stream& stream, Gelu form, const float* x, float* y, std::int64_t count);
void gelu_backward(Stream& stream, Gelu form, const float* x, const float* dy, float* dx,
                   std::int64_t count);
void relu_forward(Stream& stream, const float* x, float* y, std::int64_t count);
/// Uses the output: dx = dy if y > 0, else 0.
void relu_backward(Stream& stream, const float* y, const float* dy, float* dx, std::int64_t count);

/// y = silu(gate) * up, with silu(x) = x / (1 + exp(-x)).
void swiglu_forward(Stream& stream, const float* gate, const float* up, float* y,
                    std::int64_t count);
/// dgate may be gate, dup may be up.
void swiglu_backward(Stream& stream, const float* gate, const float* up, const float* dy,
                     float* dgate, float* dup, std::int64_t count);

/// y = cap tanh(x / cap). y may be x.
void softcap_forward(Stream& stream, float cap, const float* x, float* y, std::int64_t count);
/// Uses the output: dx = dy (1 - (y / cap)^2). dx may be dy.
void softcap_backward(Stream& stream, float cap, const float* y, const float* dy, float* dx,
                      std::int64_t count);

/// y = a + b; y may be either.
void add(Stream& stream, const float* a, const float* b, float* y, std::int64_t count);

/// y[r, c] = x[r, c] + row[c].
void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns);

}  // namespace troupe::kernels
