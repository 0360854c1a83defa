#include "models/layers/attention/attention_core.h"

#include <utility>

#include "kernels/attention_cache.h"
#include "kernels/between_layers.h"
#include "kernels/rounding.h"

namespace troupe::models {
namespace {

using kernels::Rotation;

/// Returns the numbers with a row for each head.
Tensor by_heads(const Tensor& numbers, std::int64_t width) {
  return numbers.reshaped({numbers.count() / width, width});
}

/// Normalizes heads. Leaves them, as they came and in fp32, in `raw`.
Tensor normalized(const Pass& pass, const Tensor& heads, const Weight& scale, float eps,
                  std::int64_t width, Tensor& raw, Tensor& rstd) {
  Stream& stream = pass.stream;
  raw = by_heads(kernels::as_type(stream, heads, DType::f32), width);
  Tensor y = stream.make(raw.shape(), heads.dtype());
  rstd = stream.make({raw.shape()[0]});
  kernels::rms_norm(stream, raw, scale.value, eps, y, rstd);
  return y.reshaped(heads.shape());
}

/// Returns the gradient of heads before their norm. Leaves that of their rows in `gradient`.
Tensor before_norm(const Pass& pass, const Tensor& dy, const Weight& scale, const Tensor& raw,
                   const Tensor& rstd, Tensor& gradient) {
  Tensor dx = pass.stream.make(raw.shape()), unwanted;
  gradient = dy.reshaped(raw.shape());
  kernels::rms_norm_back(pass.stream, raw, scale.value, rstd, gradient, {}, dx, unwanted);
  return dx.reshaped(dy.shape());
}

}  // namespace

void attend_or_continue(const Layer::In& in, const kernels::AttentionShape& shape,
                        kernels::HeadsOf q, kernels::HeadsOf k, kernels::HeadsOf v,
                        kernels::HeadsInto out, Tensor& logsumexp) {
  const Pass& pass = in.pass;
  if (in.caches.empty()) return kernels::attend(pass.stream, shape, q, k, v, out, logsumexp);
  auto text = shape;
  text.length = pass.most_positions;
  Tensor& cache = in.caches[0];
  if (cache.empty()) cache = kernels::make_attention_cache(pass.stream, text);
  if (pass.first_position > 0)
    return kernels::attend_to_cache(pass.stream, text, pass.first_position, q, k, v, out, cache);
  kernels::keep_in_cache(pass.stream, text, 0, k, v, cache);
  kernels::attend(pass.stream, shape, q, k, v, out, logsumexp);
}

AttentionCore::AttentionCore(const AttentionHeads& heads, std::optional<HeadNorms> norms)
    : heads_(heads), norms_(std::move(norms)) {
  assert(heads_.queries % heads_.keys == 0);
}

std::vector<Parameter> AttentionCore::parameters() const {
  if (!norms_) return {};
  return {norms_->query, norms_->key};
}

kernels::AttentionShape AttentionCore::shape_of(const Shape& input) const {
  assert(input.rank() == 3);
  return {.batch = input[0],
          .length = input[1],
          .heads = heads_.queries,
          .kv_heads = heads_.keys,
          .width = heads_.width,
          .mask = heads_.mask,
          .window = heads_.window,
          .scale = heads_.scale,
          .cap = heads_.cap};
}

Work AttentionCore::work(const Shape& input) const { return attention_work(shape_of(input)); }

Tensor AttentionCore::forward(const Layer::In& in, std::span<const Weight> norms, Tensor q,
                              Tensor k, Tensor v, Layer::SavedSpan saved) const {
  const Pass& pass = in.pass;
  Stream& stream = pass.stream;
  const auto shape = shape_of(q.shape());
  if (norms_) {
    q = normalized(pass, q, norms[0], norms_->eps, heads_.width, saved[raw_queries],
                   saved[query_rstd]);
    k = normalized(pass, k, norms[1], norms_->eps, heads_.width, saved[raw_keys], saved[key_rstd]);
  }
  if (heads_.rope) {
    const auto first = pass.first_position;
    kernels::rotate(stream, Rotation::forward, q, heads_.queries, *heads_.rope, first);
    kernels::rotate(stream, Rotation::forward, k, heads_.keys, *heads_.rope, first);
  }
  Tensor y = stream.make(q.shape(), q.dtype());
  Tensor logsumexp = stream.make({shape.batch, shape.heads, shape.length});
  attend_or_continue(in, shape, {q}, {k}, {v}, {y}, logsumexp);
  saved[queries] = std::move(q);
  saved[keys] = std::move(k);
  saved[values] = std::move(v);
  saved[result] = y;
  saved[log_sums] = std::move(logsumexp);
  return y;
}

AttentionCore::Gradients AttentionCore::backward(const Pass& pass, std::span<const Weight> norms,
                                                 const Tensor& dy, Layer::SavedSpan saved) const {
  Stream& stream = pass.stream;
  const Tensor q = std::exchange(saved[queries], {}), k = std::exchange(saved[keys], {});
  const Tensor v = std::exchange(saved[values], {}), y = std::exchange(saved[result], {});
  const Tensor logsumexp = std::exchange(saved[log_sums], {});
  const Tensor dout = kernels::as_type(stream, dy, y.dtype());
  Gradients made{.q = stream.make(q.shape(), q.dtype()),
                 .k = stream.make(k.shape(), k.dtype()),
                 .v = stream.make(v.shape(), v.dtype())};
  kernels::attend_back(stream, shape_of(dy.shape()), {q}, {k}, {v}, {y}, logsumexp, {dout},
                       {made.q}, {made.k}, {made.v});
  if (heads_.rope) {
    kernels::rotate(stream, Rotation::back, made.q, heads_.queries, *heads_.rope);
    kernels::rotate(stream, Rotation::back, made.k, heads_.keys, *heads_.rope);
  }
  if (norms_) {
    made.q = before_norm(pass, made.q, norms[0], saved[raw_queries], saved[query_rstd],
                         saved[query_gradient]);
    made.k =
        before_norm(pass, made.k, norms[1], saved[raw_keys], saved[key_rstd], saved[key_gradient]);
  }
  return made;
}

void AttentionCore::backward_weight(const Pass& pass, Layer::SavedSpan saved,
                                    Layer::SavedSpan gradients) const {
  if (!norms_) return;
  const auto add = [&](Saved raw, Saved rstd, Saved gradient, Tensor& into) {
    const Tensor x = std::exchange(saved[raw], {}), inverse_root = std::exchange(saved[rstd], {});
    const Tensor dy = std::exchange(saved[gradient], {});
    kernels::rms_norm_back_to_weight(pass.stream, x, inverse_root, dy, into);
  };
  add(raw_queries, query_rstd, query_gradient, gradients[0]);
  add(raw_keys, key_rstd, key_gradient, gradients[1]);
}

}  // namespace troupe::models
