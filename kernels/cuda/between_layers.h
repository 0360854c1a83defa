#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "kernels/layer_kernels.h"

/// Kernels for the activations between layers, for float, Float16 and BFloat16. They compute in
/// fp32 and round a result when they write it in 16 bits.
namespace troupe::kernels::cuda {

// norm.cu
template <class Number>
struct Norms {
  static void layer_norm_forward(Stream& stream, const float* x, const float* weight,
                                 const float* bias, Number* y, float* mean, float* rstd,
                                 std::int64_t rows, std::int64_t columns, float eps);
  static void layer_norm_forward_of_sum(Stream& stream, const Number* a, const float* b, float* sum,
                                        const float* weight, const float* bias, Number* y,
                                        float* mean, float* rstd, std::int64_t rows,
                                        std::int64_t columns, float eps);
  static void layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                                        const float* mean, const float* rstd, const Number* dy,
                                        const float* more, float* dx, std::int64_t rows,
                                        std::int64_t columns);
  static void layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                         const float* rstd, const Number* dy, float* dweight,
                                         float* dbias, std::int64_t rows, std::int64_t columns);
  static void rms_norm_forward(Stream& stream, const float* x, const float* weight, Number* y,
                               float* rstd, std::int64_t rows, std::int64_t columns, float eps);
  static void rms_norm_forward_of_sum(Stream& stream, const Number* a, const float* b, float* sum,
                                      const float* weight, Number* y, float* rstd,
                                      std::int64_t rows, std::int64_t columns, float eps);
  static void rms_norm_backward_input(Stream& stream, const float* x, const float* weight,
                                      const float* rstd, const Number* dy, const float* more,
                                      float* dx, std::int64_t rows, std::int64_t columns);
  static void rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd,
                                       const Number* dy, float* dweight, std::int64_t rows,
                                       std::int64_t columns);
};

template <class Number>
void layer_norm_backward_input_rounded(Stream& stream, const float* x, const float* weight,
                                       const float* mean, const float* rstd, const Number* dy,
                                       const float* more, float* dx, Number* rounded,
                                       std::int64_t rows, std::int64_t columns);
template <class Number>
void rms_norm_backward_input_rounded(Stream& stream, const float* x, const float* weight,
                                     const float* rstd, const Number* dy, const float* more,
                                     float* dx, Number* rounded, std::int64_t rows,
                                     std::int64_t columns);

// activations.cu
template <class Number>
struct Activations {
  static void add(Stream& stream, const Number* a, const float* b, float* y, std::int64_t count);
  static void relu_forward(Stream& stream, const Number* x, Number* y, std::int64_t count);
  static void relu_backward(Stream& stream, const Number* y, const Number* dy, Number* dx,
                            std::int64_t count);
  static void swiglu_forward(Stream& stream, const Number* gate, const Number* up, Number* y,
                             std::int64_t count);
  static void swiglu_backward(Stream& stream, const Number* gate, const Number* up,
                              const Number* dy, Number* dgate, Number* dup, std::int64_t count);
};

// rope.cu
template <class Number>
void rope(Stream& stream, Rotation rotation, Heads<Number> x, std::int64_t batch,
          std::int64_t length, std::int64_t heads, std::int64_t width, const RopeForm& form,
          std::int64_t first);

// softmax_cross_entropy.cu
template <class Number>
void softmax_cross_entropy(Stream& stream, const Number* logits, const std::int32_t* targets,
                           float* losses, Number* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale, const CrossEntropyForm& form);

// element_loss.cu
template <class Number>
void element_loss(Stream& stream, ElementLoss loss, const Number* z, const float* targets,
                  float* losses, Number* dz, std::int64_t count, float scale);

template <class Number>
inline constexpr LayerKernels<Number> layer_kernels = {
    .layer_norm_forward = Norms<Number>::layer_norm_forward,
    .layer_norm_forward_of_sum = Norms<Number>::layer_norm_forward_of_sum,
    .layer_norm_backward_input = Norms<Number>::layer_norm_backward_input,
    .layer_norm_backward_weight = Norms<Number>::layer_norm_backward_weight,
    .rms_norm_forward = Norms<Number>::rms_norm_forward,
    .rms_norm_forward_of_sum = Norms<Number>::rms_norm_forward_of_sum,
    .rms_norm_backward_input = Norms<Number>::rms_norm_backward_input,
    .rms_norm_backward_weight = Norms<Number>::rms_norm_backward_weight,
    .add = Activations<Number>::add,
    .relu_forward = Activations<Number>::relu_forward,
    .relu_backward = Activations<Number>::relu_backward,
    .swiglu_forward = Activations<Number>::swiglu_forward,
    .swiglu_backward = Activations<Number>::swiglu_backward,
    .rope = rope<Number>,
    .softmax_cross_entropy = softmax_cross_entropy<Number>,
    .element_loss = element_loss<Number>,
};

}  // namespace troupe::kernels::cuda
