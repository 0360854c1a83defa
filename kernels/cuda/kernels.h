#pragma once

#include "kernels/device_kernels.h"

/// The GPU versions of the functions in kernels/*.h and kernels/device_kernels.h. Functions that
/// the cores have for several types exist here for floats only.
namespace troupe::kernels::cuda {

extern const DeviceKernels all_kernels;

/// Copies a tensor to the host, once the device has finished its work so far.
void read_back(Stream& stream, const Tensor& from, void* to);

// activations.cu
decltype(kernels::gelu_forward) gelu_forward;
decltype(kernels::gelu_backward) gelu_backward;
decltype(kernels::softcap_forward) softcap_forward;
decltype(kernels::softcap_backward) softcap_backward;
decltype(kernels::add_row) add_row;

// attention.cu
decltype(kernels::attention_forward) attention_forward;
decltype(kernels::attention_backward) attention_backward;

// batch_norm.cu
decltype(kernels::batch_norm_forward) batch_norm_forward;
decltype(kernels::batch_norm_apply) batch_norm_apply;
decltype(kernels::batch_norm_backward_input) batch_norm_backward_input;
decltype(kernels::batch_norm_backward_weight) batch_norm_backward_weight;
decltype(kernels::average_pool_forward) average_pool_forward;
decltype(kernels::average_pool_backward) average_pool_backward;

// pool.cu
decltype(kernels::max_pool_forward) max_pool_forward;
decltype(kernels::max_pool_backward) max_pool_backward;
decltype(kernels::window_mean_forward) window_mean_forward;
decltype(kernels::window_mean_backward) window_mean_backward;
decltype(kernels::upsample_forward) upsample_forward;
decltype(kernels::upsample_backward) upsample_backward;

// conv2d.cu
decltype(kernels::conv2d_forward) conv2d_forward;
decltype(kernels::conv2d_backward_input) conv2d_backward_input;
decltype(kernels::conv2d_backward_weight) conv2d_backward_weight;

// copy.cu
void fill(Stream& stream, float value, float* y, std::int64_t count);
decltype(kernels::copy_rows) copy_rows;
void combine(Stream& stream, float a, const float* x, float b, const float* z, float* y,
             std::int64_t count);
void multiply(Stream& stream, const float* x, float* y, std::int64_t count);
decltype(kernels::cut_patches) cut_patches;
decltype(kernels::join_patches) join_patches;

// dropout.cu
decltype(kernels::dropout) dropout;

// embedding.cu
decltype(kernels::embedding_forward) embedding_forward;
decltype(kernels::embedding_backward_weight) embedding_backward_weight;

// experts/experts.cu
decltype(kernels::route) route;
decltype(kernels::route_backward) route_backward;
decltype(kernels::sum_experts) sum_experts;
decltype(kernels::sum_experts_backward) sum_experts_backward;
template <class Number>
void multiply_experts(Stream& stream, const DeviceExperts<Number>& product,
                      std::span<const Number* const> matrices);
template <class Number>
void gradients_of_experts(Stream& stream, const DeviceExpertGradients<Number>& product,
                          std::span<const ExpertGradient> gradients);

// experts/on_tensor_cores.cu
template <class Number>
void multiply_experts_on_tensor_cores(Stream& stream, const DeviceExperts<Number>& product,
                                      std::span<const Number* const> matrices);
template <class Number>
void gradients_of_experts_on_tensor_cores(Stream& stream,
                                          const DeviceExpertGradients<Number>& product,
                                          std::span<const ExpertGradient> gradients);

// late.cu
void adam_direction(Stream& stream, const AdamDirection& direction, const float* m, const float* v,
                    float* y, std::int64_t count);
void adam_forecast(Stream& stream, const AdamForecast& forecast, const float* w, const float* m,
                   const float* v, const float* phi, float* y, std::int64_t count);
void average_squares(Stream& stream, const SquareAverage& rule, const float* x, float* average,
                     std::int64_t count);
void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count);
void gap_share(Stream& stream, const UsualStep& rule, const GapBetween<float>& gap, float* share,
               float* gradient, std::int64_t count);
void compensate_delay(Stream& stream, double strength, const float* now, const float* then,
                      float* g, std::int64_t count);
void inverses_of_blocks(Stream& stream, const float* x, std::int64_t count, Inverses* blocks);

// product.cu
void multiply(Stream& stream, const DeviceProduct<float>& product);
void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns);

// steps.cu
void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share);
void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count, const float* decay_share);
void accumulate(Stream& stream, float* a, const float* b, std::int64_t count);
void squares_of_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                       double* sums);
decltype(kernels::all_finite) all_finite;

}  // namespace troupe::kernels::cuda
