#include "kernels/conv2d.h"

#include "kernels/device_kernels.h"

namespace troupe::kernels {

void convolve(Stream& stream, const Conv2dShape& shape, const Tensor& x, const Tensor& w,
              Tensor& y) {
  if (x.dtype() == DType::f32) return conv2d_forward(stream, shape, x.f32(), w.f32(), y.f32());
  on_tensor_cores(stream, [&](const TensorCoreKernels<BFloat16>& there) {
    there.conv2d_forward(stream, shape, x.data<BFloat16>(), w.data<BFloat16>(), y.data<BFloat16>());
  });
}

void convolve_back_to_input(Stream& stream, const Conv2dShape& shape, const Tensor& w,
                            const Tensor& dy, Tensor& dx) {
  if (dy.dtype() == DType::f32)
    return conv2d_backward_input(stream, shape, w.f32(), dy.f32(), dx.f32());
  on_tensor_cores(stream, [&](const TensorCoreKernels<BFloat16>& there) {
    there.conv2d_backward_input(stream, shape, w.data<BFloat16>(), dy.data<BFloat16>(),
                                dx.data<BFloat16>());
  });
}

void convolve_back_to_weight(Stream& stream, const Conv2dShape& shape, const Tensor& x,
                             const Tensor& dy, Tensor& dw) {
  if (x.dtype() == DType::f32)
    return conv2d_backward_weight(stream, shape, x.f32(), dy.f32(), dw.f32());
  on_tensor_cores(stream, [&](const TensorCoreKernels<BFloat16>& there) {
    there.conv2d_backward_weight(stream, shape, x.data<BFloat16>(), dy.data<BFloat16>(), dw.f32());
  });
}

}  // namespace troupe::kernels
