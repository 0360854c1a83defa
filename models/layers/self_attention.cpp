#include "models/layers/self_attention.h"

#include <utility>

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
  const auto shape = kernel_shape(x.shape());
  const auto row = x.shape()[2], width = row / 3;
  const float* qkv = x.f32();
  Tensor y = in.pass.stream.make(output(x.shape()));
  Tensor logsumexp = in.pass.stream.make({shape.batch, shape.heads, shape.length});
  kernels::attention_forward(in.pass.stream, shape, {qkv, row}, {qkv + width, row},
                             {qkv + 2 * width, row}, {y.f32(), width}, logsumexp.f32());
  saved[input] = std::move(x);
  saved[result] = y;
  saved[log_sums] = std::move(logsumexp);
  return y;
}

Tensor SelfAttention::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  const Tensor x = std::exchange(saved[input], {});
  const Tensor y = std::exchange(saved[result], {});
  const Tensor logsumexp = std::exchange(saved[log_sums], {});
  const auto row = x.shape()[2], width = row / 3;
  const float* qkv = x.f32();
  Tensor dx = in.pass.stream.make(x.shape());
  float* dqkv = dx.f32();
  kernels::attention_backward(in.pass.stream, kernel_shape(x.shape()), {qkv, row},
                              {qkv + width, row}, {qkv + 2 * width, row}, {y.f32(), width},
                              logsumexp.f32(), {dy.f32(), width}, {dqkv, row}, {dqkv + width, row},
                              {dqkv + 2 * width, row});
  return dx;
}

}  // namespace troupe::models
