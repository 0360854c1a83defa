#include "models/layers/rotary_attention.h"

#include <utility>

#include "kernels/between_layers.h"
#include "kernels/rounding.h"

namespace troupe::models {
RotaryAttention::RotaryAttention(const Heads& heads, Projections projections)
    : heads_(heads),
      query_(std::move(projections.query)),
      key_(std::move(projections.key)),
      value_(std::move(projections.value)),
      additions_({&query_, &key_, &value_}, 3) {
  assert(heads_.width % 2 == 0 && heads_.queries % heads_.keys == 0);
}

std::vector<Parameter> RotaryAttention::parameters() const {
  std::vector<Parameter> all = {query_.parameter(), key_.parameter(), value_.parameter()};
  additions_.declare(all);
  return all;
}

kernels::AttentionShape RotaryAttention::kernel_shape(const Shape& input) const {
  assert(input.rank() == 3);
  return {.batch = input[0],
          .length = input[1],
          .heads = heads_.queries,
          .kv_heads = heads_.keys,
          .width = heads_.width,
          .mask = kernels::Mask::causal};
}

Work RotaryAttention::work(const Shape& input) const {
  Work work;
  for (const Projection* projection : {&query_, &key_, &value_}) work.add(projection->work(input));
  for (const auto slot : {query_slot, key_slot, value_slot}) additions_.add_work(input, slot, work);
  work.add(attention_work(kernel_shape(input)));
  return work;
}

Tensor RotaryAttention::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const auto shape = kernel_shape(x.shape());
  const Tensor operand = kernels::as_operand(stream, x, in.pass.precision);
  Tensor q = query_.forward(in.pass, in.weights[query_slot], operand, nullptr);
  Tensor k = key_.forward(in.pass, in.weights[key_slot], operand, nullptr);
  Tensor v = value_.forward(in.pass, in.weights[value_slot], operand, nullptr);
  additions_.forward(in, query_slot, operand, q);
  additions_.forward(in, key_slot, operand, k);
  additions_.forward(in, value_slot, operand, v);
  kernels::rotate(stream, kernels::Rotation::forward, q, heads_.queries, heads_.theta);
  kernels::rotate(stream, kernels::Rotation::forward, k, heads_.keys, heads_.theta);
  Tensor y = stream.make(q.shape(), q.dtype());
  Tensor logsumexp = stream.make({shape.batch, shape.heads, shape.length});
  kernels::attend(stream, shape, {q}, {k}, {v}, {y}, logsumexp);
  saved[input] = operand;
  saved[queries] = std::move(q);
  saved[keys] = std::move(k);
  saved[values] = std::move(v);
  saved[result] = y;
  saved[log_sums] = std::move(logsumexp);
  return y;
}

Tensor RotaryAttention::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const Tensor y = std::exchange(saved[result], {});
  const Tensor logsumexp = std::exchange(saved[log_sums], {});
  const auto type = y.dtype();
  const Tensor dout = kernels::as_type(stream, dy, type);
  Tensor dq = stream.make(saved[queries].shape(), type);
  Tensor dk = stream.make(saved[keys].shape(), type);
  Tensor dv = stream.make(saved[values].shape(), type);
  kernels::attend_back(stream, kernel_shape(dy.shape()), {saved[queries]}, {saved[keys]},
                       {saved[values]}, {y}, logsumexp, {dout}, {dq}, {dk}, {dv});
  kernels::rotate(stream, kernels::Rotation::back, dq, heads_.queries, heads_.theta);
  kernels::rotate(stream, kernels::Rotation::back, dk, heads_.keys, heads_.theta);
  saved[queries] = kernels::as_operand(stream, dq, in.pass.precision);
  saved[keys] = kernels::as_operand(stream, dk, in.pass.precision);
  saved[values] = kernels::as_operand(stream, dv, in.pass.precision);
  if (in.input_gradient == InputGradient::unwanted) return {};

  Tensor dx;
  query_.add_backward_input(in.pass, in.weights[query_slot], saved[queries], dx);
  key_.add_backward_input(in.pass, in.weights[key_slot], saved[keys], dx);
  value_.add_backward_input(in.pass, in.weights[value_slot], saved[values], dx);
  additions_.backward_input(in, query_slot, saved[queries], dx);
  additions_.backward_input(in, key_slot, saved[keys], dx);
  additions_.backward_input(in, value_slot, saved[values], dx);
  return dx;
}

void RotaryAttention::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const auto add = [&](const Projection& projection, Slot slot, Saved gradient) {
    const Tensor dy = std::exchange(saved[gradient], {});
    additions_.backward_weight(in, slot, x, dy, gradients);
    if (!in.is_frozen(slot)) projection.backward_weight(in.pass, x, dy, gradients[slot]);
  };
  add(query_, query_slot, queries);
  add(key_, key_slot, keys);
  add(value_, value_slot, values);
}

}  // namespace troupe::models
