#include "kernels/conv2d.h"

#include "kernels/device_kernels.h"

namespace troupe::kernels {
namespace {

/// Calls use(kernels) with the kernels of a tensor-core precision.
template <class Use>
void on_tensor_cores_in(Precision precision, Stream& stream, Use use) {
  const DType type = activation_type(precision);
  if (type == DType::f32) return on_tensor_cores<float>(stream, use);
  on_tensor_cores(stream, type, use);
}

}  // namespace

void convolve(Stream& stream, const Conv2dShape& shape, Precision precision, const Tensor& x,
              const Tensor& w, Tensor& y) {
  if (!is_on_tensor_cores(precision))
    return conv2d_forward(stream, shape, x.f32(), w.f32(), y.f32());
  on_tensor_cores_in(precision, stream, [&]<class Number>(const TensorCoreKernels<Number>& there) {
    there.conv2d_forward(stream, shape, x.data<Number>(), w.data<Number>(), y.data<Number>());
  });
}

void convolve_back_to_input(Stream& stream, const Conv2dShape& shape, Precision precision,
                            const Tensor& w, const Tensor& dy, Tensor& dx) {
  if (!is_on_tensor_cores(precision))
    return conv2d_backward_input(stream, shape, w.f32(), dy.f32(), dx.f32());
  on_tensor_cores_in(precision, stream, [&]<class Number>(const TensorCoreKernels<Number>& there) {
    there.conv2d_backward_input(stream, shape, w.data<Number>(), dy.data<Number>(),
                                dx.data<Number>());
  });
}

void convolve_back_to_weight(Stream& stream, const Conv2dShape& shape, Precision precision,
                             const Tensor& x, const Tensor& dy, Tensor& dw) {
  if (!is_on_tensor_cores(precision))
    return conv2d_backward_weight(stream, shape, x.f32(), dy.f32(), dw.f32());
  on_tensor_cores_in(precision, stream, [&]<class Number>(const TensorCoreKernels<Number>& there) {
    there.conv2d_backward_weight(stream, shape, x.data<Number>(), dy.data<Number>(), dw.f32());
  });
}

}  // namespace troupe::kernels
