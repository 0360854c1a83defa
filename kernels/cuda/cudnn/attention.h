#pragma once

#include "kernels/attention.h"
#include "kernels/cuda/cudnn/graph.h"

namespace troupe::kernels::cudnn {

/// What kernels/attention.h computes, with the elements from one position to the next as there.
/// Gradients lie as what they are gradients of.
struct AttentionProblem {
  AttentionShape shape;
  std::int64_t q_row = 0;
  std::int64_t k_row = 0;
  std::int64_t v_row = 0;
  std::int64_t out_row = 0;
  Element element = Element::bf16;

  auto operator<=>(const AttentionProblem&) const = default;
};

/// q, k, v, the scale and, for a mask, -infinity come in; logsumexp (fp32) and out go out.
Graph attention_forward(const AttentionProblem& problem);

/// In which order the addends of dq are summed up.
enum class Sums : std::uint8_t {
  as_they_come,  // In fp32 memory, which holds zeros before. Two runs differ in the last bits.
  in_order,      // Needs length x length numbers of 16 bits as workspace for each head.
};

/// q, k, v, out, dout, logsumexp, the scale, 1 and, for a mask, -infinity come in; a row's sum of
/// dout * out, which is workspace, dv, dk and dq go out.
Graph attention_backward(const AttentionProblem& problem, Sums sums);

}  // namespace troupe::kernels::cudnn
