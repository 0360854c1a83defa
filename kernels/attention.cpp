#include "kernels/attention.h"

#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

std::int64_t row_of(const Tensor& tensor) { return tensor.shape().last(); }

HeadsIn plain(HeadsOf heads) { return {heads.tensor.f32() + heads.first, row_of(heads.tensor)}; }
HeadsOut plain(HeadsInto heads) { return {heads.tensor.f32() + heads.first, row_of(heads.tensor)}; }

template <class Number>
Heads<const Number> rounded_heads(HeadsOf heads) {
  return {heads.tensor.data<Number>() + heads.first, row_of(heads.tensor)};
}
template <class Number>
Heads<Number> rounded_heads(HeadsInto heads) {
  return {heads.tensor.data<Number>() + heads.first, row_of(heads.tensor)};
}

}  // namespace

void attend(Stream& stream, const AttentionShape& shape, HeadsOf q, HeadsOf k, HeadsOf v,
            HeadsInto out, Tensor& logsumexp, const AttentionData& data) {
  if (q.tensor.dtype() == DType::f32)
    return attention_forward(stream, shape, plain(q), plain(k), plain(v), plain(out),
                             logsumexp.f32(), data);
  on_tensor_cores(stream, q.tensor.dtype(),
                  [&]<class Number>(const TensorCoreKernels<Number>& there) {
                    there.attention_forward(stream, shape, rounded_heads<Number>(q),
                                            rounded_heads<Number>(k), rounded_heads<Number>(v),
                                            rounded_heads<Number>(out), logsumexp.f32(), data);
                  });
}

void attend_back(Stream& stream, const AttentionShape& shape, HeadsOf q, HeadsOf k, HeadsOf v,
                 HeadsOf out, const Tensor& logsumexp, HeadsOf dout, HeadsInto dq, HeadsInto dk,
                 HeadsInto dv, const AttentionData& data, float* dbiases) {
  if (q.tensor.dtype() == DType::f32)
    return attention_backward(stream, shape, plain(q), plain(k), plain(v), plain(out),
                              logsumexp.f32(), plain(dout), plain(dq), plain(dk), plain(dv), data,
                              dbiases);
  on_tensor_cores(
      stream, q.tensor.dtype(), [&]<class Number>(const TensorCoreKernels<Number>& there) {
        there.attention_backward(stream, shape, rounded_heads<Number>(q), rounded_heads<Number>(k),
                                 rounded_heads<Number>(v), rounded_heads<Number>(out),
                                 logsumexp.f32(), rounded_heads<Number>(dout),
                                 rounded_heads<Number>(dq), rounded_heads<Number>(dk),
                                 rounded_heads<Number>(dv), data, dbiases);
      });
}

}  // namespace troupe::kernels
