#pragma once

#include "kernels/device_kernels.h"

/// The functions of kernels/*.h and kernels/device_kernels.h for GPUs, and what they are made with.
namespace troupe::kernels::cuda {

/// All of them.
extern const DeviceKernels all_kernels;

/// Waits for what the device has written, and copies it to the host.
void read_back(Stream& stream, const Tensor& from, void* to);

// activations.cu
void gelu_tanh_forward(Stream& stream, const float* x, float* y, std::int64_t count);
void gelu_tanh_backward(Stream& stream, const float* x, const float* dy, float* dx,
                        std::int64_t count);
void gelu_erf_forward(Stream& stream, const float* x, float* y, std::int64_t count);
void gelu_erf_backward(Stream& stream, const float* x, const float* dy, float* dx,
                       std::int64_t count);
void relu_forward(Stream& stream, const float* x, float* y, std::int64_t count);
void relu_backward(Stream& stream, const float* y, const float* dy, float* dx, std::int64_t count);
void swiglu_forward(Stream& stream, const float* gate, const float* up, float* y,
                    std::int64_t count);
void swiglu_backward(Stream& stream, const float* gate, const float* up, const float* dy,
                     float* dgate, float* dup, std::int64_t count);
void add(Stream& stream, const float* a, const float* b, float* y, std::int64_t count);
void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns);

// attention.cu
void attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k, HeadsIn v,
                       HeadsOut out, float* logsumexp);
void attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn q, HeadsIn k,
                        HeadsIn v, HeadsIn out, const float* logsumexp, HeadsIn dout, HeadsOut dq,
                        HeadsOut dk, HeadsOut dv);

// batch_norm.cu
void batch_norm_forward(Stream& stream, const ImageShape& shape, const float* x,
                        const float* weight, const float* bias, float* y, float* mean, float* rstd,
                        float* unbiased_variance, float eps);
void batch_norm_apply(Stream& stream, const ImageShape& shape, const float* x, const float* weight,
                      const float* bias, const float* mean, const float* variance, float* y,
                      float eps);
void batch_norm_backward_input(Stream& stream, const ImageShape& shape, const float* x,
                               const float* weight, const float* mean, const float* rstd,
                               const float* dy, float* dx);
void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float* x,
                                const float* mean, const float* rstd, const float* dy,
                                float* dweight, float* dbias);
void average_pool_forward(Stream& stream, const ImageShape& shape, const float* x, float* y);
void average_pool_backward(Stream& stream, const ImageShape& shape, const float* dy, float* dx);

// conv2d.cu
void conv2d_forward(Stream& stream, const Conv2dShape& shape, const float* x, const float* w,
                    float* y);
void conv2d_backward_input(Stream& stream, const Conv2dShape& shape, const float* w,
                           const float* dy, float* dx);
void conv2d_backward_weight(Stream& stream, const Conv2dShape& shape, const float* x,
                            const float* dy, float* dw);

// copy.cu
void fill(Stream& stream, float value, float* y, std::int64_t count);
void copy_rows(Stream& stream, RowsIn from, RowsOut to, std::int64_t rows, std::int64_t columns);
void combine(Stream& stream, float a, const float* x, float b, const float* z, float* y,
             std::int64_t count);
void multiply(Stream& stream, const float* x, float* y, std::int64_t count);
void cut_patches(Stream& stream, const PatchShape& shape, const float* images, float* patches);
void join_patches(Stream& stream, const PatchShape& shape, const float* patches, float* images);

// dropout.cu
void dropout(Stream& stream, const RandomKey& key, float rate, const float* x, float* y,
             std::int64_t samples, std::int64_t per_sample);

// embedding.cu
void embedding_forward(Stream& stream, const float* table, const std::int32_t* tokens, float* y,
                       std::int64_t rows, std::int64_t columns);
void embedding_backward_weight(Stream& stream, const std::int32_t* tokens, const float* dy,
                               float* dtable, std::int64_t rows, std::int64_t columns);

// late.cu
void adam_direction(Stream& stream, const AdamDirection& direction, const float* m, const float* v,
                    float* y, std::int64_t count);
void adam_forecast(Stream& stream, const AdamForecast& forecast, const float* w, const float* m,
                   const float* v, const float* phi, float* y, std::int64_t count);
void average_squares(Stream& stream, const SquareAverage& rule, const float* x, float* average,
                     std::int64_t count);
void usual_step(Stream& stream, const UsualStep& rule, const float* x, float* y,
                std::int64_t count);
void gap_share(Stream& stream, const float* now, const float* then, const float* usual, float* y,
               std::int64_t count);
void compensate_delay(Stream& stream, double strength, const float* now, const float* then,
                      float* g, std::int64_t count);
Inverses inverses(Stream& stream, const float* x, std::int64_t count);

// norm.cu
void layer_norm_forward(Stream& stream, const float* x, const float* weight, const float* bias,
                        float* y, float* mean, float* rstd, std::int64_t rows, std::int64_t columns,
                        float eps);
void layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                               const float* mean, const float* rstd, const float* dy, float* dx,
                               std::int64_t rows, std::int64_t columns);
void layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                const float* rstd, const float* dy, float* dweight, float* dbias,
                                std::int64_t rows, std::int64_t columns);
void rms_norm_forward(Stream& stream, const float* x, const float* weight, float* y, float* rstd,
                      std::int64_t rows, std::int64_t columns, float eps);
void rms_norm_backward_input(Stream& stream, const float* x, const float* weight, const float* rstd,
                             const float* dy, float* dx, std::int64_t rows, std::int64_t columns);
void rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd, const float* dy,
                              float* dweight, std::int64_t rows, std::int64_t columns);

// product.cu
void multiply(Stream& stream, const DeviceProduct& product);
void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns);

// rope.cu
void rope(Stream& stream, Rotation rotation, HeadsOut x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, double step);

// softmax_cross_entropy.cu
void softmax_cross_entropy(Stream& stream, const float* logits, const std::int32_t* targets,
                           float* losses, float* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale);

// steps.cu
void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share);
void adam_step(Stream& stream, const AdamStep& step, const float* w, const float* gradient,
               float* m, float* v, float* next, std::int64_t count, const float* decay_share);
void accumulate(Stream& stream, float* a, const float* b, std::int64_t count);
void squares_of_blocks(Stream& stream, const float* x, std::int64_t count, double* sums);
bool all_finite(Stream& stream, const float* x, std::int64_t count);

}  // namespace troupe::kernels::cuda
