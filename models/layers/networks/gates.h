#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"

namespace troupe::models {

/// The activation of a gated network's gate.
enum class Gate : std::uint8_t { silu, gelu, gelu_tanh };

/// Returns f(gate) * up. Both have one type. silu keeps it; the others compute in fp32.
Tensor gated(Stream& stream, Gate form, const Tensor& gate, const Tensor& up);

struct GateGradients {
  Tensor gate, up;
};
/// Returns the gradients of gate and up, in the type of gated().
GateGradients gated_back(Stream& stream, Gate form, const Tensor& gate, const Tensor& up,
                         const Tensor& dy);

}  // namespace troupe::models
