#pragma once

#include <compare>
#include <cstdint>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"

namespace troupe::kernels {

enum class Mask : std::uint8_t { full, causal };

/// Softmax attention of `heads` heads over `kv_heads` heads of keys and values (fewer: grouped
/// queries). Head h reads keys and values of head h * kv_heads / heads. Scores are scaled by 1 /
/// sqrt(width), or by `scale`; then `cap` makes each score s cap * tanh(s / cap).
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t length = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t width = 0;  // Elements of one head.
  Mask mask = Mask::causal;
  std::int64_t window = 0;  // With a causal mask: the last positions that each one sees. 0: all.
  float scale = 0;          // 0: 1 / sqrt(width).
  float cap = 0;            // 0: none.

  /// Returns whether libraries of tensor cores compute it, which know none of the last three.
  bool is_plain() const { return window == 0 && scale == 0 && cap == 0; }

  auto operator<=>(const AttentionShape&) const = default;
};

/// Numbers laid out as [batch, length, heads, width] with `row` elements from one position to the
/// next, so that the output of a fused projection needs no copy.
template <class Number>
struct Heads {
  Number* data = nullptr;
  std::int64_t row = 0;
};
using HeadsIn = Heads<const float>;
using HeadsOut = Heads<float>;

/// out = softmax(scaled q k^T) v. The backward pass needs `logsumexp` [batch, heads,
/// length]. Never stores a length x length matrix. Each (batch, head) is one thread's work.
void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp);

/// Overwrites dq, dk and dv.
void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv);

/// The heads in a tensor [batch, length, columns], from column `first` on.
struct HeadsOf {
  const Tensor& tensor;
  std::int64_t first = 0;
};
struct HeadsInto {
  Tensor& tensor;
  std::int64_t first = 0;
};

/// Computes attention of tensors that all have one type: fp32, or bf16 or fp16 on a device with
/// tensor cores, which chooses the order of its sums.
void attend(Stream& stream, const AttentionShape& shape, HeadsOf q, HeadsOf k, HeadsOf v,
            HeadsInto out, Tensor& logsumexp);
void attend_back(Stream& stream, const AttentionShape& shape, HeadsOf q, HeadsOf k, HeadsOf v,
                 HeadsOf out, const Tensor& logsumexp, HeadsOf dout, HeadsInto dq, HeadsInto dk,
                 HeadsInto dv);

}  // namespace troupe::kernels
