#include "models/layers/attention/self_attention.h"

#include <utility>

#include "kernels/rounding.h"

namespace troupe::models {
kernels::AttentionShape SelfAttention::kernel_shape(const Shape& input) const {
  assert(input.rank() == 3 && input[2] % (3 * heads_) == 0);
  return {.batch = input[0],
          .length = input[1],
          .heads = heads_,
          .kv_heads = heads_,
          .width = input[2] / 3 / heads_,
          .mask = mask_};
}

Work SelfAttention::work(const Shape& input) const { return attention_work(kernel_shape(input)); }

Shape SelfAttention::output(const Shape& input) const { return {input[0], input[1], input[2] / 3}; }

Tensor SelfAttention::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const auto shape = kernel_shape(x.shape());
  const auto width = x.shape()[2] / 3;
  const auto type = kernels::activation_type(in.pass.precision);
  const Tensor qkv = kernels::as_type(stream, x, type);
  Tensor y = stream.make(output(x.shape()), type);
  Tensor logsumexp = stream.make({shape.batch, shape.heads, shape.length});
  attend_or_continue(in, shape, {qkv, 0}, {qkv, width}, {qkv, 2 * width}, {y}, logsumexp);
  saved[input] = qkv;
  saved[result] = y;
  saved[log_sums] = std::move(logsumexp);
  return y;
}

Tensor SelfAttention::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const Tensor qkv = std::exchange(saved[input], {});
  const Tensor y = std::exchange(saved[result], {});
  const Tensor logsumexp = std::exchange(saved[log_sums], {});
  const auto width = qkv.shape()[2] / 3;
  const Tensor dout = kernels::as_type(stream, dy, qkv.dtype());
  Tensor dx = stream.make(qkv.shape(), qkv.dtype());
  kernels::attend_back(stream, kernel_shape(qkv.shape()), {qkv, 0}, {qkv, width}, {qkv, 2 * width},
                       {y}, logsumexp, {dout}, {dx, 0}, {dx, width}, {dx, 2 * width});
  return dx;
}

}  // namespace troupe::models
