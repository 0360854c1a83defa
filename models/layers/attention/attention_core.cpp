#include "models/layers/attention/attention_core.h"

#include <utility>

#include "kernels/attention_cache.h"
#include "kernels/between_layers.h"
#include "kernels/rounding.h"
#include "kernels/steps.h"

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
                        kernels::HeadsInto out, Tensor& logsumexp,
                        const kernels::AttentionData& data) {
  const Pass& pass = in.pass;
  if (in.caches.empty()) return kernels::attend(pass.stream, shape, q, k, v, out, logsumexp, data);
  auto text = shape;
  text.length = pass.most_positions;
  Tensor& cache = in.caches[0];
  if (cache.empty()) cache = kernels::make_attention_cache(pass.stream, text, data.biases);
  if (pass.first_position > 0)
    return kernels::attend_to_cache(pass.stream, text, pass.first_position, q, k, v, out, cache);
  kernels::keep_in_cache(pass.stream, text, 0, k, v, cache);
  kernels::attend(pass.stream, shape, q, k, v, out, logsumexp, data);
}

AttentionCore::AttentionCore(const AttentionHeads& heads, std::optional<HeadNorms> norms,
                             std::optional<RelativeBiases> relative)
    : heads_(heads), norms_(std::move(norms)), relative_(std::move(relative)) {
  assert(heads_.queries % heads_.keys == 0);
}

std::vector<Parameter> AttentionCore::parameters() const {
  std::vector<Parameter> all;
  if (norms_) all = {norms_->query, norms_->key};
  if (relative_) all.push_back(relative_->table);
  return all;
}

kernels::AttentionShape AttentionCore::shape_of(const Shape& queries, std::int64_t keys,
                                                Mode mode) const {
  assert(queries.rank() == 3);
  return {.batch = queries[0],
          .length = queries[1],
          .heads = heads_.queries,
          .kv_heads = heads_.keys,
          .width = heads_.width,
          .mask = heads_.mask,
          .window = heads_.window,
          .scale = heads_.scale,
          .cap = heads_.cap,
          .keys = keys == queries[1] ? 0 : keys,
          .rate = mode == Mode::training ? heads_.rate : 0,
          .buckets = relative_ ? relative_->table.shape[0] : 0,
          .distance = relative_ ? relative_->distance : 0};
}

kernels::AttentionData AttentionCore::data_of(const Pass& pass, std::span<const Weight> own,
                                              const Tensor& span) const {
  RandomKey key = pass.key;
  key.operation = heads_.draw;
  return {.span = span.empty() ? nullptr : span.data<std::int32_t>(),
          .biases = relative_ ? own[own_norms()].value.f32() : nullptr,
          .key = key};
}

Work AttentionCore::work(const Shape& queries, std::int64_t keys) const {
  return attention_work(shape_of(queries, keys, Mode::training));
}

Tensor AttentionCore::forward(const Layer::In& in, std::span<const Weight> own, Tensor q, Tensor k,
                              Tensor v, Layer::SavedSpan saved) const {
  const Pass& pass = in.pass;
  Stream& stream = pass.stream;
  const auto shape = shape_of(q.shape(), k.shape()[1], pass.mode);
  if (norms_) {
    q = normalized(pass, q, own[0], norms_->eps, heads_.width, saved[raw_queries],
                   saved[query_rstd]);
    k = normalized(pass, k, own[1], norms_->eps, heads_.width, saved[raw_keys], saved[key_rstd]);
  }
  if (heads_.rope) {
    const auto first = pass.first_position;
    kernels::rotate(stream, Rotation::forward, q, heads_.queries, *heads_.rope, first);
    kernels::rotate(stream, Rotation::forward, k, heads_.keys, *heads_.rope, first);
  }
  Tensor y = stream.make(q.shape(), q.dtype());
  Tensor logsumexp = stream.make({shape.batch, shape.heads, shape.length});
  Tensor span;
  if (heads_.span) span = kept_value(in, *heads_.span);
  attend_or_continue(in, shape, {q}, {k}, {v}, {y}, logsumexp, data_of(pass, own, span));
  if (heads_.span) saved[span_slot()] = std::move(span);
  saved[queries] = std::move(q);
  saved[keys] = std::move(k);
  saved[values] = std::move(v);
  saved[result] = y;
  saved[log_sums] = std::move(logsumexp);
  return y;
}

kernels::AttentionShape AttentionCore::fixed_shape(const Shape& rows, std::int64_t keys) const {
  assert(!heads_.rope && !relative_ && "positions of queries and keys are not of one sequence");
  auto shape = shape_of(rows, keys, Mode::evaluation);
  shape.keys = keys;
  return shape;
}

void AttentionCore::keep_fixed(const Layer::In& in, std::span<const Weight> own, Tensor k,
                               const Tensor& v) const {
  Tensor raw, rstd;
  if (norms_) k = normalized(in.pass, k, own[1], norms_->eps, heads_.width, raw, rstd);
  const auto shape = fixed_shape(k.shape(), k.shape()[1]);
  in.caches[0] = kernels::make_attention_cache(in.pass.stream, shape);
  kernels::keep_in_cache(in.pass.stream, shape, 0, {k}, {v}, in.caches[0]);
}

Tensor AttentionCore::attend_to_fixed(const Layer::In& in, std::span<const Weight> own, Tensor q,
                                      std::int64_t keys) const {
  Tensor raw, rstd;
  if (norms_) q = normalized(in.pass, q, own[0], norms_->eps, heads_.width, raw, rstd);
  Tensor y = in.pass.stream.make(q.shape(), q.dtype());
  kernels::attend_to_sequence(
      in.pass.stream, fixed_shape(q.shape(), keys), {q},
      heads_.span ? kept_value(in, *heads_.span).data<std::int32_t>() : nullptr, {y}, in.caches[0]);
  return y;
}

AttentionCore::Gradients AttentionCore::backward(const Pass& pass, std::span<const Weight> own,
                                                 const Tensor& dy, Layer::SavedSpan saved) const {
  Stream& stream = pass.stream;
  const Tensor q = std::exchange(saved[queries], {}), k = std::exchange(saved[keys], {});
  const Tensor v = std::exchange(saved[values], {}), y = std::exchange(saved[result], {});
  const Tensor logsumexp = std::exchange(saved[log_sums], {});
  const Tensor dout = kernels::as_type(stream, dy, y.dtype());
  Gradients made{.q = stream.make(q.shape(), q.dtype()),
                 .k = stream.make(k.shape(), k.dtype()),
                 .v = stream.make(v.shape(), v.dtype())};
  const Tensor span = heads_.span ? std::exchange(saved[span_slot()], {}) : Tensor();
  Tensor dbiases;
  if (relative_) dbiases = saved[biases_slot()] = stream.make(relative_->table.shape);
  kernels::attend_back(stream, shape_of(dy.shape(), k.shape()[1], pass.mode), {q}, {k}, {v}, {y},
                       logsumexp, {dout}, {made.q}, {made.k}, {made.v}, data_of(pass, own, span),
                       relative_ ? dbiases.f32() : nullptr);
  if (heads_.rope) {
    kernels::rotate(stream, Rotation::back, made.q, heads_.queries, *heads_.rope);
    kernels::rotate(stream, Rotation::back, made.k, heads_.keys, *heads_.rope);
  }
  if (norms_) {
    made.q = before_norm(pass, made.q, own[0], saved[raw_queries], saved[query_rstd],
                         saved[query_gradient]);
    made.k =
        before_norm(pass, made.k, own[1], saved[raw_keys], saved[key_rstd], saved[key_gradient]);
  }
  return made;
}

void AttentionCore::backward_weight(const Pass& pass, Layer::SavedSpan saved,
                                    Layer::SavedSpan gradients) const {
  if (relative_) {
    const Tensor dbiases = std::exchange(saved[biases_slot()], {});
    kernels::accumulate(pass.stream, gradients[own_norms()].f32(), dbiases.f32(), dbiases.count());
  }
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
