#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

#include "kernels/activations.h"
#include "kernels/attention.h"
#include "kernels/batch_norm.h"
#include "kernels/combine.h"
#include "kernels/conv2d.h"
#include "kernels/copy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/float16.h"
#include "kernels/late.h"
#include "kernels/layer_kernels.h"
#include "kernels/patches.h"
#include "kernels/steps.h"

namespace troupe::kernels {

/// A matrix where it lies, by row or by column.
template <class Number>
struct DeviceMatrix {
  const Number* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

/// c[i, j] = start[i, j] + a[i, 0] b[0, j] + a[i, 1] b[1, j] + ..., with sums in fp32.
template <class Number>
struct DeviceProduct {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;  // At least 1.
  DeviceMatrix<Number> a;
  DeviceMatrix<Number> b;
  const float* start = nullptr;   // Null: zeros. May be c.
  std::int64_t start_stride = 0;  // From row to row; 0: all rows start with the same one.
  float* c = nullptr;
  std::int64_t c_stride = 0;
};

enum class Factor : std::uint8_t { a, b };

/// What a device computes on its tensor cores, or around them: operands and results are rounded to
/// one type of 16 bits, sums are in fp32. In which order they are made is the device's own affair,
/// but the same each time.
template <class Number>
struct TensorCoreKernels {
  using In = Heads<const Number>;
  using Out = Heads<Number>;

  void (*multiply)(Stream&, const DeviceProduct<Number>&);
  /// Products whose c is not looked at: what is made of their sums takes its place, and has no gaps
  /// between its rows. The start is one row, and may be rounded too.
  void (*multiply_and_round)(Stream&, const DeviceProduct<Number>&, Number* y);
  /// pre = the sums and y = gelu(pre).
  void (*multiply_to_gelu)(Stream&, const DeviceProduct<Number>&, Gelu form, Number* pre,
                           Number* y);
  /// dpre = the sums, times gelu'(pre). Without a start.
  void (*multiply_by_gelu_slope)(Stream&, const DeviceProduct<Number>&, Gelu form,
                                 const Number* pre, Number* dpre);
  /// The product, and sums[i] += what row i of a, or column i of b, adds up to. Of that factor's
  /// memory each row is one step of depth, and there are no gaps.
  void (*multiply_and_add_up)(Stream&, const DeviceProduct<Number>&, Factor which, float* sums);

  void (*attention_forward)(Stream&, const AttentionShape&, In q, In k, In v, Out out,
                            float* logsumexp);
  void (*attention_backward)(Stream&, const AttentionShape&, In q, In k, In v, In out,
                             const float* logsumexp, In dout, Out dq, Out dk, Out dv);

  void (*conv2d_forward)(Stream&, const Conv2dShape&, const Number* x, const Number* w, Number* y);
  void (*conv2d_backward_input)(Stream&, const Conv2dShape&, const Number* w, const Number* dy,
                                Number* dx);
  void (*conv2d_backward_weight)(Stream&, const Conv2dShape&, const Number* x, const Number* dy,
                                 float* dw);

  LayerKernels<Number> layers;
};

/// The same of tensors in fp32, whose numbers lose their last digits where they are multiplied:
/// tf32. Nothing else is computed so.
template <>
struct TensorCoreKernels<float> {
  void (*multiply)(Stream&, const DeviceProduct<float>&);
  decltype(kernels::conv2d_forward)* conv2d_forward;
  decltype(kernels::conv2d_backward_input)* conv2d_backward_input;
  decltype(kernels::conv2d_backward_weight)* conv2d_backward_weight;
};

/// The kernels of a device: what the functions of the same names do on a stream that has one. Each
/// gives the bits that the cores give. What is not here, the cores do for the device
/// (on_cores.h).
struct DeviceKernels {
  LayerKernels<float> layers;

  decltype(kernels::gelu_forward)* gelu_forward;
  decltype(kernels::gelu_backward)* gelu_backward;
  decltype(kernels::add_row)* add_row;

  decltype(kernels::attention_forward)* attention_forward;
  decltype(kernels::attention_backward)* attention_backward;

  decltype(kernels::batch_norm_forward)* batch_norm_forward;
  decltype(kernels::batch_norm_apply)* batch_norm_apply;
  decltype(kernels::batch_norm_backward_input)* batch_norm_backward_input;
  decltype(kernels::batch_norm_backward_weight)* batch_norm_backward_weight;
  decltype(kernels::average_pool_forward)* average_pool_forward;
  decltype(kernels::average_pool_backward)* average_pool_backward;

  decltype(kernels::conv2d_forward)* conv2d_forward;
  decltype(kernels::conv2d_backward_input)* conv2d_backward_input;
  decltype(kernels::conv2d_backward_weight)* conv2d_backward_weight;

  void (*combine)(Stream&, float a, const float* x, float b, const float* z, float* y,
                  std::int64_t count);
  void (*multiply_elements)(Stream&, const float* x, float* y, std::int64_t count);
  void (*fill)(Stream&, float value, float* y, std::int64_t count);
  decltype(kernels::copy_rows)* copy_rows;
  decltype(kernels::cut_patches)* cut_patches;
  decltype(kernels::join_patches)* join_patches;

  decltype(kernels::dropout)* dropout;
  decltype(kernels::embedding_forward)* embedding_forward;
  decltype(kernels::embedding_backward_weight)* embedding_backward_weight;

  void (*adam_direction)(Stream&, const AdamDirection&, const float* m, const float* v, float* y,
                         std::int64_t count);
  void (*adam_forecast)(Stream&, const AdamForecast&, const float* w, const float* m,
                        const float* v, const float* phi, float* y, std::int64_t count);
  void (*average_squares)(Stream&, const SquareAverage&, const float* x, float* average,
                          std::int64_t count);
  void (*usual_step)(Stream&, const UsualStep&, const float* x, float* y, std::int64_t count);
  void (*gap_share)(Stream&, const UsualStep&, const GapBetween<float>&, float* share,
                    float* gradient, std::int64_t count);
  void (*compensate_delay)(Stream&, double strength, const float* now, const float* then, float* g,
                           std::int64_t count);
  Inverses (*inverses)(Stream&, const float* x, std::int64_t count);

  /// In place of packed weights and blocks: linear.h says what it makes of them. Each term is fused
  /// into the sum so far, in the order of depth: the bits of the processors' product in fp32.
  void (*multiply)(Stream&, const DeviceProduct<float>&);
  void (*bias_backward)(Stream&, const float* dy, float* db, std::int64_t rows,
                        std::int64_t columns);

  void (*sgd_step)(Stream&, const SgdStep&, const float* w, const float* gradient, float* momentum,
                   float* next, std::int64_t count, const float* decay_share);
  void (*adam_step)(Stream&, const AdamStep&, const float* w, const float* gradient, float* m,
                    float* v, float* next, std::int64_t count, const float* decay_share);
  void (*squares_of_blocks)(Stream&, const float* x, std::int64_t count, double* sums);
  void (*accumulate)(Stream&, float* a, const float* b, std::int64_t count);
  decltype(kernels::all_finite)* all_finite;

  void (*round_to_f16)(Stream&, const float* x, Float16* y, std::int64_t count);
  void (*widen_f16)(Stream&, const Float16* x, float* y, std::int64_t count);
  void (*round_to_bf16)(Stream&, const float* x, BFloat16* y, std::int64_t count);
  void (*widen_bf16)(Stream&, const BFloat16* x, float* y, std::int64_t count);
  /// Other bits than the cores': what the precisions of tensor cores are made of, and nothing
  /// else.
  const TensorCoreKernels<float>* tf32;
  const TensorCoreKernels<Float16>* fp16;
  const TensorCoreKernels<BFloat16>* bf16;

  template <class Number>
  const TensorCoreKernels<Number>& on_tensor_cores() const {
    if constexpr (std::is_same_v<Number, float>) return *tf32;
    if constexpr (std::is_same_v<Number, Float16>) return *fp16;
    if constexpr (std::is_same_v<Number, BFloat16>) return *bf16;
  }
};

/// Null where the cores compute.
inline const DeviceKernels* kernels_of(const Stream& stream) {
  return stream.device() ? &stream.device()->kernels() : nullptr;
}

/// Calls use(kernels) for what a device alone can compute. A rehearsal leaves it out.
template <class Number, class Use>
void on_tensor_cores(Stream& stream, Use use) {
  if (const auto* there = kernels_of(stream)) return use(there->on_tensor_cores<Number>());
  stream.for_each(1, [](std::int64_t) { assert(false && "tensor cores without a GPU"); });
}

/// The same for tensors of a type of 16 bits.
template <class Use>
void on_tensor_cores(Stream& stream, DType type, Use use) {
  if (type == DType::bf16) return on_tensor_cores<BFloat16>(stream, use);
  assert(type == DType::f16);
  on_tensor_cores<Float16>(stream, use);
}

}  // namespace troupe::kernels
