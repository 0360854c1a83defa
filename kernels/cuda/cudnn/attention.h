#pragma once

#include "kernels/attention.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// An attention problem of kernels/attention.h, with its distances between positions. Gradients
/// have the layout of their tensors.
struct AttentionProblem {
  AttentionShape shape;
  std::int64_t q_row = 0;
  std::int64_t k_row = 0;
  std::int64_t v_row = 0;
  std::int64_t out_row = 0;
  Element element = Element::bf16;

  auto operator<=>(const AttentionProblem&) const = default;
};

/// Inputs: q, k, v, the scale and, with a mask, -infinity. Outputs: logsumexp (fp32) and out.
Graph attention_forward(const AttentionProblem& problem);

/// The order in which the terms of dq are summed.
enum class Sums : std::uint8_t {
  as_they_come,  // In fp32 memory that must hold zeros. Runs differ in the last bits.
  in_order,      // Uses length x length 16-bit numbers of workspace per head.
};

/// Inputs: q, k, v, out, dout, logsumexp, the scale, 1 and, with a mask, -infinity. Outputs: the
/// row sums of dout * out (only scratch memory), dv, dk and dq.
Graph attention_backward(const AttentionProblem& problem, Sums sums);

}  // namespace troupe::kernels::cudnn
