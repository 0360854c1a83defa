#include "kernels/between_layers.h"

#include <cassert>

#include "kernels/activations.h"
#include "kernels/device_kernels.h"
#include "kernels/norm.h"
#include "kernels/rounding.h"

namespace troupe::kernels {
namespace {

constexpr LayerKernels<float> in_fp32 = {
    .layer_norm_forward = layer_norm_forward,
    .layer_norm_forward_of_sum = layer_norm_forward_of_sum,
    .layer_norm_backward_input = layer_norm_backward_input,
    .layer_norm_backward_weight = layer_norm_backward_weight,
    .rms_norm_forward = rms_norm_forward,
    .rms_norm_forward_of_sum = rms_norm_forward_of_sum,
    .rms_norm_backward_input = rms_norm_backward_input,
    .rms_norm_backward_weight = rms_norm_backward_weight,
    .add = add,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .swiglu_forward = swiglu_forward,
    .swiglu_backward = swiglu_backward,
    .rope = rope,
    .softmax_cross_entropy = softmax_cross_entropy,
    .element_loss = element_loss,
};

/// Calls use(kernels) with the kernels for numbers of this type.
template <class Use>
void in_its_type(Stream& stream, DType type, Use use) {
  if (type == DType::f32) return use(in_fp32);
  on_tensor_cores(stream, type,
                  [&]<class Number>(const TensorCoreKernels<Number>& there) { use(there.layers); });
}

/// Calls use(kernels) if one kernel computes a gradient, adds `more` and rounds the sum. Returns
/// whether it does.
template <class Use>
bool rounds_gradient(Stream& stream, const Tensor& dy, const Tensor& more, const Tensor& rounded,
                     Use use) {
  if (more.empty() || rounded.empty() || rounded.dtype() != dy.dtype()) return false;
  on_tensor_cores(stream, dy.dtype(), use);
  return true;
}

void round_into(Stream& stream, const Tensor& numbers, Tensor& rounded) {
  if (rounded.empty()) return;
  if (rounded.dtype() == DType::bf16)
    round_all(stream, numbers.f32(), rounded.data<BFloat16>(), rounded.count());
  else
    round_all(stream, numbers.f32(), rounded.data<Float16>(), rounded.count());
}

template <class Moments>
auto* rstd_of(Moments& moments) {
  assert(moments.shape()[0] == 2);
  return moments.f32() + moments.shape()[1];
}

}  // namespace

void layer_norm(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, Tensor& y, Tensor& moments) {
  const auto rows = x.shape().rows(), columns = x.shape().last();
  in_its_type(stream, y.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.layer_norm_forward(stream, x.f32(), weight.f32(), bias.f32(), y.data<Number>(),
                            moments.f32(), rstd_of(moments), rows, columns, eps);
  });
}

void layer_norm_of_sum(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& weight,
                       const Tensor& bias, float eps, Tensor& sum, Tensor& y, Tensor& moments) {
  if (a.dtype() != y.dtype()) {
    sum_of(stream, a, b, sum);
    return layer_norm(stream, sum, weight, bias, eps, y, moments);
  }
  const auto rows = sum.shape().rows(), columns = sum.shape().last();
  in_its_type(stream, y.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.layer_norm_forward_of_sum(stream, a.data<Number>(), b.f32(), sum.f32(), weight.f32(),
                                   bias.f32(), y.data<Number>(), moments.f32(), rstd_of(moments),
                                   rows, columns, eps);
  });
}

void layer_norm_back(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& moments,
                     const Tensor& dy, const Tensor& more, Tensor& dx, Tensor& rounded) {
  const auto rows = x.shape().rows(), columns = x.shape().last();
  const bool is_done = rounds_gradient(
      stream, dy, more, rounded, [&]<class Number>(const TensorCoreKernels<Number>& there) {
        there.layer_norm_backward_input_rounded(stream, x.f32(), weight.f32(), moments.f32(),
                                                rstd_of(moments), dy.data<Number>(), more.f32(),
                                                dx.f32(), rounded.data<Number>(), rows, columns);
      });
  if (is_done) return;
  in_its_type(stream, dy.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.layer_norm_backward_input(stream, x.f32(), weight.f32(), moments.f32(), rstd_of(moments),
                                   dy.data<Number>(), more.f32(), dx.f32(), rows, columns);
  });
  round_into(stream, dx, rounded);
}

void layer_norm_back_to_weight(Stream& stream, const Tensor& x, const Tensor& moments,
                               const Tensor& dy, Tensor& dweight, Tensor& dbias) {
  const auto rows = x.shape().rows(), columns = x.shape().last();
  in_its_type(stream, dy.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.layer_norm_backward_weight(stream, x.f32(), moments.f32(), rstd_of(moments),
                                    dy.data<Number>(), dweight.f32(), dbias.f32(), rows, columns);
  });
}

void rms_norm(Stream& stream, const Tensor& x, const Tensor& weight, float eps, Tensor& y,
              Tensor& rstd) {
  const auto rows = x.shape().rows(), columns = x.shape().last();
  in_its_type(stream, y.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.rms_norm_forward(stream, x.f32(), weight.f32(), y.data<Number>(), rstd.f32(), rows,
                          columns, eps);
  });
}

void rms_norm_of_sum(Stream& stream, const Tensor& a, const Tensor& b, const Tensor& weight,
                     float eps, Tensor& sum, Tensor& y, Tensor& rstd) {
  if (a.dtype() != y.dtype()) {
    sum_of(stream, a, b, sum);
    return rms_norm(stream, sum, weight, eps, y, rstd);
  }
  const auto rows = sum.shape().rows(), columns = sum.shape().last();
  in_its_type(stream, y.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.rms_norm_forward_of_sum(stream, a.data<Number>(), b.f32(), sum.f32(), weight.f32(),
                                 y.data<Number>(), rstd.f32(), rows, columns, eps);
  });
}

void rms_norm_back(Stream& stream, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                   const Tensor& dy, const Tensor& more, Tensor& dx, Tensor& rounded) {
  const auto rows = x.shape().rows(), columns = x.shape().last();
  const bool is_done = rounds_gradient(
      stream, dy, more, rounded, [&]<class Number>(const TensorCoreKernels<Number>& there) {
        there.rms_norm_backward_input_rounded(stream, x.f32(), weight.f32(), rstd.f32(),
                                              dy.data<Number>(), more.f32(), dx.f32(),
                                              rounded.data<Number>(), rows, columns);
      });
  if (is_done) return;
  in_its_type(stream, dy.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.rms_norm_backward_input(stream, x.f32(), weight.f32(), rstd.f32(), dy.data<Number>(),
                                 more.f32(), dx.f32(), rows, columns);
  });
  round_into(stream, dx, rounded);
}

void rms_norm_back_to_weight(Stream& stream, const Tensor& x, const Tensor& rstd, const Tensor& dy,
                             Tensor& dweight) {
  const auto rows = x.shape().rows(), columns = x.shape().last();
  in_its_type(stream, dy.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.rms_norm_backward_weight(stream, x.f32(), rstd.f32(), dy.data<Number>(), dweight.f32(),
                                  rows, columns);
  });
}

void sum_of(Stream& stream, const Tensor& a, const Tensor& b, Tensor& y) {
  in_its_type(stream, a.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.add(stream, a.data<Number>(), b.f32(), y.f32(), y.count());
  });
}

void relu(Stream& stream, const Tensor& x, Tensor& y) {
  in_its_type(stream, x.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.relu_forward(stream, x.data<Number>(), y.data<Number>(), y.count());
  });
}

void relu_back(Stream& stream, const Tensor& y, const Tensor& dy, Tensor& dx) {
  in_its_type(stream, y.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.relu_backward(stream, y.data<Number>(), dy.data<Number>(), dx.data<Number>(), y.count());
  });
}

void swiglu(Stream& stream, const Tensor& gate, const Tensor& up, Tensor& y) {
  in_its_type(stream, gate.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.swiglu_forward(stream, gate.data<Number>(), up.data<Number>(), y.data<Number>(),
                        y.count());
  });
}

void swiglu_back(Stream& stream, const Tensor& gate, const Tensor& up, const Tensor& dy,
                 Tensor& dgate, Tensor& dup) {
  in_its_type(stream, gate.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.swiglu_backward(stream, gate.data<Number>(), up.data<Number>(), dy.data<Number>(),
                         dgate.data<Number>(), dup.data<Number>(), dy.count());
  });
}

void rotate(Stream& stream, Rotation rotation, Tensor& x, std::int64_t heads, const RopeForm& form,
            std::int64_t first) {
  const auto batch = x.shape()[0], length = x.shape()[1], row = x.shape()[2], width = row / heads;
  in_its_type(stream, x.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.rope(stream, rotation, {x.data<Number>(), row}, batch, length, heads, width, form, first);
  });
}

void cross_entropy(Stream& stream, Tensor& logits, const Tensor& targets, Tensor& losses,
                   LogitGradient gradient, float scale, const CrossEntropyForm& form) {
  const auto rows = logits.shape().rows(), classes = logits.shape().last();
  const bool is_wanted = gradient == LogitGradient::wanted;
  const auto* right = targets.data<std::int32_t>();
  in_its_type(stream, logits.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.softmax_cross_entropy(stream, logits.data<Number>(), right, losses.f32(),
                               is_wanted ? logits.data<Number>() : nullptr, rows, classes, scale,
                               form);
  });
}

void element_losses(Stream& stream, ElementLoss loss, const Tensor& z, const Tensor& targets,
                    Tensor& losses, Tensor& dz, float scale) {
  in_its_type(stream, z.dtype(), [&]<class Number>(const LayerKernels<Number>& they) {
    they.element_loss(stream, loss, z.data<Number>(), targets.f32(), losses.f32(),
                      dz.empty() ? nullptr : dz.data<Number>(), z.count(), scale);
  });
}

}  // namespace troupe::kernels
