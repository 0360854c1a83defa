#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "kernels/attention.h"
#include "kernels/element_loss.h"
#include "kernels/float16.h"
#include "kernels/rope.h"
#include "kernels/softmax_cross_entropy.h"

namespace troupe::kernels {

/// The kernels that between_layers.h calls, for float, Float16 or BFloat16. Each does what the
/// function of the same name does in fp32. In 16 bits it computes in fp32 and rounds each result
/// once, when it writes it.
template <class Number>
struct LayerKernels {
  void (*layer_norm_forward)(Stream&, const float* x, const float* weight, const float* bias,
                             Number* y, float* mean, float* rstd, std::int64_t rows,
                             std::int64_t columns, float eps);
  void (*layer_norm_forward_of_sum)(Stream&, const Number* a, const float* b, float* sum,
                                    const float* weight, const float* bias, Number* y, float* mean,
                                    float* rstd, std::int64_t rows, std::int64_t columns,
                                    float eps);
  void (*layer_norm_backward_input)(Stream&, const float* x, const float* weight, const float* mean,
                                    const float* rstd, const Number* dy, const float* more,
                                    float* dx, std::int64_t rows, std::int64_t columns);
  void (*layer_norm_backward_weight)(Stream&, const float* x, const float* mean, const float* rstd,
                                     const Number* dy, float* dweight, float* dbias,
                                     std::int64_t rows, std::int64_t columns);
  void (*rms_norm_forward)(Stream&, const float* x, const float* weight, Number* y, float* rstd,
                           std::int64_t rows, std::int64_t columns, float eps);
  void (*rms_norm_forward_of_sum)(Stream&, const Number* a, const float* b, float* sum,
                                  const float* weight, Number* y, float* rstd, std::int64_t rows,
                                  std::int64_t columns, float eps);
  void (*rms_norm_backward_input)(Stream&, const float* x, const float* weight, const float* rstd,
                                  const Number* dy, const float* more, float* dx, std::int64_t rows,
                                  std::int64_t columns);
  void (*rms_norm_backward_weight)(Stream&, const float* x, const float* rstd, const Number* dy,
                                   float* dweight, std::int64_t rows, std::int64_t columns);
  void (*add)(Stream&, const Number* a, const float* b, float* y, std::int64_t count);
  void (*relu_forward)(Stream&, const Number* x, Number* y, std::int64_t count);
  void (*relu_backward)(Stream&, const Number* y, const Number* dy, Number* dx, std::int64_t count);
  void (*swiglu_forward)(Stream&, const Number* gate, const Number* up, Number* y,
                         std::int64_t count);
  void (*swiglu_backward)(Stream&, const Number* gate, const Number* up, const Number* dy,
                          Number* dgate, Number* dup, std::int64_t count);
  void (*rope)(Stream&, Rotation, Heads<Number> x, std::int64_t batch, std::int64_t length,
               std::int64_t heads, std::int64_t width, const RopeForm& form, std::int64_t first);
  void (*softmax_cross_entropy)(Stream&, const Number* logits, const std::int32_t* targets,
                                float* losses, Number* dlogits, std::int64_t rows,
                                std::int64_t classes, float scale, const CrossEntropyForm& form);
  void (*element_loss)(Stream&, ElementLoss, const Number* z, const float* targets, float* losses,
                       Number* dz, std::int64_t count, float scale);
};

}  // namespace troupe::kernels
