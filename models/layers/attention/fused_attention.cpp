#include "models/layers/attention/fused_attention.h"

#include <utility>

#include "kernels/copy.h"
#include "kernels/rounding.h"
#include "models/layers/wide.h"

namespace troupe::models {

FusedAttention::FusedAttention(AttentionCore core, Order order)
    : core_(std::move(core)), order_(order) {
  assert(core_.heads().queries == core_.heads().keys && core_.parameters().empty());
}

FusedAttention::Third FusedAttention::third(int index, std::int64_t width) const {
  if (order_ == Order::qkv)
    return {.first = index * width, .count = 1, .columns = width, .stride = 3 * width};
  const auto head = core_.heads().width;
  return {.first = index * head, .count = width / head, .columns = head, .stride = 3 * head};
}

Tensor FusedAttention::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const auto type = kernels::activation_type(in.pass.precision);
  const Tensor rows = wide(in, x);
  const auto width = output(x.shape())[2];
  const auto part = [&](int index) {
    const auto from = third(index, width);
    Tensor made = stream.make(output(x.shape()));
    kernels::copy_rows(stream, {rows.f32() + from.first, from.stride}, {made.f32(), from.columns},
                       x.shape().rows() * from.count, from.columns);
    return kernels::as_type(stream, made, type);
  };
  Tensor q = part(0), k = part(1), v = part(2);
  return core_.forward(in, {}, std::move(q), std::move(k), std::move(v), saved);
}

Tensor FusedAttention::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const auto shape = dy.shape();
  const auto made = core_.backward(in.pass, {}, dy, saved);
  Tensor dx = stream.make({shape[0], shape[1], 3 * shape[2]});
  const Tensor* gradients[] = {&made.q, &made.k, &made.v};
  for (int index = 0; index < 3; ++index) {
    const auto to = third(index, shape[2]);
    const Tensor rows = wide(in, *gradients[index]);
    kernels::copy_rows(stream, {rows.f32(), to.columns}, {dx.f32() + to.first, to.stride},
                       shape.rows() * to.count, to.columns);
  }
  return dx;
}

}  // namespace troupe::models
