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
#include "kernels/experts.h"
#include "kernels/float16.h"
#include "kernels/late.h"
#include "kernels/layer_kernels.h"
#include "kernels/patches.h"
#include "kernels/pool.h"
#include "kernels/steps.h"

namespace troupe::kernels {

/// A matrix in its stored layout. Either stride may be 1.
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
  std::int64_t start_stride = 0;  // Between rows; 0: all rows start with the same row.
  float* c = nullptr;
  std::int64_t c_stride = 0;
};

/// Products of the rows of each expert with a matrix of its own (kernels/experts.h), with sums in
/// fp32. Each has the order of DeviceKernels::multiply. The bounds of the rows lie with the device,
/// so the host waits for nothing.
template <class Number>
struct DeviceExperts {
  std::int64_t rows = 0;  // The number for all experts together.
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  const std::int32_t* bounds = nullptr;  // [experts + 1]
  const Number* x = nullptr;             // [rows, depth]
  std::int64_t row_stride = 0;           // Both strides are those of a matrix [depth, columns].
  std::int64_t column_stride = 0;
  float* y = nullptr;  // [rows, columns]
};
/// The gradients of such matrices: dw = a^T b over the rows of each expert.
template <class Number>
struct DeviceExpertGradients {
  std::int64_t a_columns = 0;  // The rows of a gradient.
  std::int64_t b_columns = 0;
  std::int64_t rows = 0;  // The number for all experts together.
  const std::int32_t* bounds = nullptr;
  const Number* a = nullptr;
  const Number* b = nullptr;
};
template <class Number>
struct ExpertKernels {
  void (*multiply)(Stream&, const DeviceExperts<Number>&, std::span<const Number* const> matrices);
  void (*gradients)(Stream&, const DeviceExpertGradients<Number>&,
                    std::span<const ExpertGradient> gradients);
};

enum class Factor : std::uint8_t { a, b };

/// The kernels of a device that use its tensor cores, or run between such kernels. Operands and
/// results are rounded to one 16-bit type; sums are in fp32. The device chooses the order of its
/// sums, but always uses the same order.
template <class Number>
struct TensorCoreKernels {
  using In = Heads<const Number>;
  using Out = Heads<Number>;

  void (*multiply)(Stream&, const DeviceProduct<Number>&);
  /// Computes a product and writes the rounded sums to y. This kernel and the next two ignore the
  /// product's c and write rows without gaps. The start is one row, which they may round too.
  void (*multiply_and_round)(Stream&, const DeviceProduct<Number>&, Number* y);
  /// Writes pre = the sums and y = gelu(pre).
  void (*multiply_to_gelu)(Stream&, const DeviceProduct<Number>&, Gelu form, Number* pre,
                           Number* y);
  /// Writes dpre = the sums * gelu'(pre). The product has no start.
  void (*multiply_by_gelu_slope)(Stream&, const DeviceProduct<Number>&, Gelu form,
                                 const Number* pre, Number* dpre);
  /// Computes the product and adds to sums[i] the sum of row i of a, or of column i of b. In the
  /// memory of that factor a row holds one step of depth, and rows have no gaps.
  void (*multiply_and_add_up)(Stream&, const DeviceProduct<Number>&, Factor which, float* sums);

  void (*attention_forward)(Stream&, const AttentionShape&, In q, In k, In v, Out out,
                            float* logsumexp, const AttentionData&);
  void (*attention_backward)(Stream&, const AttentionShape&, In q, In k, In v, In out,
                             const float* logsumexp, In dout, Out dq, Out dk, Out dv,
                             const AttentionData&, float* dbiases);

  void (*conv2d_forward)(Stream&, const Conv2dShape&, const Number* x, const Number* w, Number* y);
  void (*conv2d_backward_input)(Stream&, const Conv2dShape&, const Number* w, const Number* dy,
                                Number* dx);
  void (*conv2d_backward_weight)(Stream&, const Conv2dShape&, const Number* x, const Number* dy,
                                 float* dw);

  LayerKernels<Number> layers;
  /// Do what the functions of `layers` do, and write dx also as rounded numbers. `more` is not
  /// null.
  void (*layer_norm_backward_input_rounded)(Stream&, const float* x, const float* weight,
                                            const float* mean, const float* rstd, const Number* dy,
                                            const float* more, float* dx, Number* rounded,
                                            std::int64_t rows, std::int64_t columns);
  void (*rms_norm_backward_input_rounded)(Stream&, const float* x, const float* weight,
                                          const float* rstd, const Number* dy, const float* more,
                                          float* dx, Number* rounded, std::int64_t rows,
                                          std::int64_t columns);
};

/// Kernels for fp32 tensors that round factors to tf32 in products and convolutions. All other
/// arithmetic stays in fp32.
template <>
struct TensorCoreKernels<float> {
  void (*multiply)(Stream&, const DeviceProduct<float>&);
  decltype(kernels::conv2d_forward)* conv2d_forward;
  decltype(kernels::conv2d_backward_input)* conv2d_backward_input;
  decltype(kernels::conv2d_backward_weight)* conv2d_backward_weight;
};

/// The kernels of a device, named like the functions that call them on a stream with a device. Each
/// gives the bits that the cores give. For operations without an entry the cores compute in the
/// device's place (on_cores.h).
struct DeviceKernels {
  LayerKernels<float> layers;

  decltype(kernels::gelu_forward)* gelu_forward;
  decltype(kernels::gelu_backward)* gelu_backward;
  decltype(kernels::softcap_forward)* softcap_forward;
  decltype(kernels::softcap_backward)* softcap_backward;
  decltype(kernels::add_row)* add_row;

  decltype(kernels::attention_forward)* attention_forward;
  decltype(kernels::attention_backward)* attention_backward;

  decltype(kernels::batch_norm_forward)* batch_norm_forward;
  decltype(kernels::batch_norm_apply)* batch_norm_apply;
  decltype(kernels::batch_norm_backward_input)* batch_norm_backward_input;
  decltype(kernels::batch_norm_backward_weight)* batch_norm_backward_weight;
  decltype(kernels::average_pool_forward)* average_pool_forward;
  decltype(kernels::average_pool_backward)* average_pool_backward;
  decltype(kernels::max_pool_forward)* max_pool_forward;
  decltype(kernels::max_pool_backward)* max_pool_backward;
  decltype(kernels::window_mean_forward)* window_mean_forward;
  decltype(kernels::window_mean_backward)* window_mean_backward;
  decltype(kernels::upsample_forward)* upsample_forward;
  decltype(kernels::upsample_backward)* upsample_backward;

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

  decltype(kernels::route)* route;
  decltype(kernels::route_backward)* route_backward;
  decltype(kernels::sum_experts)* sum_experts;
  decltype(kernels::sum_experts_backward)* sum_experts_backward;
  ExpertKernels<float> experts_f32;
  ExpertKernels<Float16> experts_f16;
  ExpertKernels<BFloat16> experts_bf16;
  /// Their sums are in the order of the tensor cores. Numbers that these cannot read in packs are
  /// multiplied as by the kernels above.
  ExpertKernels<Float16> experts_on_tensor_cores_f16;
  ExpertKernels<BFloat16> experts_on_tensor_cores_bf16;

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
  void (*inverses_of_blocks)(Stream&, const float* x, std::int64_t count, Inverses* blocks);

  /// Multiplies unpacked matrices for the functions of linear.h. Fuses each term into the running
  /// sum in the order of depth, so that the bits are those of the CPU's product in fp32.
  void (*multiply)(Stream&, const DeviceProduct<float>&);
  void (*bias_backward)(Stream&, const float* dy, float* db, std::int64_t rows,
                        std::int64_t columns);

  void (*sgd_step)(Stream&, const SgdStep&, const float* w, const float* gradient, float* momentum,
                   float* next, std::int64_t count, const float* decay_share);
  void (*adam_step)(Stream&, const AdamStep&, const float* w, const float* gradient, float* m,
                    float* v, float* next, std::int64_t count, const float* decay_share);
  void (*squares_of_blocks)(Stream&, std::span<const std::span<const float>> tensors, double* sums);
  void (*accumulate)(Stream&, float* a, const float* b, std::int64_t count);
  decltype(kernels::all_finite)* all_finite;

  void (*round_to_f16)(Stream&, const float* x, Float16* y, std::int64_t count);
  void (*widen_f16)(Stream&, const Float16* x, float* y, std::int64_t count);
  void (*round_to_bf16)(Stream&, const float* x, BFloat16* y, std::int64_t count);
  void (*widen_bf16)(Stream&, const BFloat16* x, float* y, std::int64_t count);
  /// Kernels for the precisions of tensor cores only. Their bits differ from those of the cores.
  const TensorCoreKernels<float>* tf32;
  const TensorCoreKernels<Float16>* fp16;
  const TensorCoreKernels<BFloat16>* bf16;

  template <class Number>
  const TensorCoreKernels<Number>& on_tensor_cores() const {
    if constexpr (std::is_same_v<Number, float>) return *tf32;
    if constexpr (std::is_same_v<Number, Float16>) return *fp16;
    if constexpr (std::is_same_v<Number, BFloat16>) return *bf16;
  }
  /// Tensor cores multiply numbers of 16 bits only.
  template <class Number>
  const ExpertKernels<Number>& experts(bool by_tensor_cores) const {
    if constexpr (std::is_same_v<Number, float>) return experts_f32;
    if constexpr (std::is_same_v<Number, Float16>)
      return by_tensor_cores ? experts_on_tensor_cores_f16 : experts_f16;
    if constexpr (std::is_same_v<Number, BFloat16>)
      return by_tensor_cores ? experts_on_tensor_cores_bf16 : experts_bf16;
  }
};

/// Returns null if the cores compute.
inline const DeviceKernels* kernels_of(const Stream& stream) {
  return stream.device() ? &stream.device()->kernels() : nullptr;
}

/// Calls use(kernels) for work that only a device can do. A rehearsal skips it.
template <class Number, class Use>
void on_tensor_cores(Stream& stream, Use use) {
  if (const auto* there = kernels_of(stream)) return use(there->on_tensor_cores<Number>());
  stream.for_each(1, [](std::int64_t) { assert(false && "tensor cores without a GPU"); });
}

/// Calls use(kernels) with the kernels for tensors of a 16-bit type.
template <class Use>
void on_tensor_cores(Stream& stream, DType type, Use use) {
  if (type == DType::bf16) return on_tensor_cores<BFloat16>(stream, use);
  assert(type == DType::f16);
  on_tensor_cores<Float16>(stream, use);
}

}  // namespace troupe::kernels
