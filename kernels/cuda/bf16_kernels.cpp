#include <cassert>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/rounding.h"
#include "kernels/cuda/tensor_cores.h"

// Where cuDNN cannot, the kernels for fp32 compute on widened operands, and the result is rounded.
namespace troupe::kernels::cuda {
namespace {

using In = DeviceHeads<const BFloat16>;
using Out = DeviceHeads<BFloat16>;

void run(Stream& stream, const cudnn::ReadyGraph& graph, std::span<const void* const> given,
         std::span<void* const> made) {
  Tensor workspace;
  if (graph.workspace() > 0) workspace = stream.make({graph.workspace()}, DType::u8);
  graph.run(given, made, workspace.raw());
}

void multiply_bf16(Stream& stream, const DeviceProduct<BFloat16>& product) {
  tensor_cores_of(stream).multiply(product);
}

std::int64_t positions(const AttentionShape& shape) { return shape.batch * shape.length; }

/// Heads in fp32, without gaps.
struct WideHeads {
  Tensor numbers;
  std::int64_t rows, columns;

  WideHeads(Stream& stream, const AttentionShape& shape, std::int64_t heads)
      : rows(positions(shape)), columns(heads * shape.width) {
    numbers = stream.make({rows, columns});
  }
  WideHeads(Stream& stream, const AttentionShape& shape, std::int64_t heads, In from)
      : WideHeads(stream, shape, heads) {
    widen_rows(stream, from, numbers.f32(), rows, columns);
  }
  HeadsIn in() const { return {numbers.f32(), columns}; }
  HeadsOut out() { return {numbers.f32(), columns}; }
  void round_to(Stream& stream, Out to) const {
    round_rows(stream, numbers.f32(), to, rows, columns);
  }
};

float scale_of(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.width));
}
constexpr float nothing = -std::numeric_limits<float>::infinity();
constexpr float one = 1;

void attention_forward_bf16(Stream& stream, const AttentionShape& shape, In q, In k, In v, Out out,
                            float* logsumexp) {
  const auto* graph = tensor_cores_of(stream).attention_forward(
      {.shape = shape, .q_row = q.row, .k_row = k.row, .v_row = v.row, .out_row = out.row});
  if (graph) {
    const float scale = scale_of(shape);
    std::vector<const void*> given{q.data, k.data, v.data, &scale};
    if (shape.mask == Mask::causal) given.push_back(&nothing);
    const std::vector<void*> made{logsumexp, out.data};
    return run(stream, *graph, given, made);
  }
  const WideHeads wide_q(stream, shape, shape.heads, q), wide_k(stream, shape, shape.kv_heads, k);
  const WideHeads wide_v(stream, shape, shape.kv_heads, v);
  WideHeads wide_out(stream, shape, shape.heads);
  kernels::attention_forward(stream, shape, wide_q.in(), wide_k.in(), wide_v.in(), wide_out.out(),
                             logsumexp);
  wide_out.round_to(stream, out);
}

void attention_backward_bf16(Stream& stream, const AttentionShape& shape, In q, In k, In v, In out,
                             const float* logsumexp, In dout, Out dq, Out dk, Out dv) {
  // As layers have them, and as a graph of cuDNN's is told.
  assert(dq.row == q.row && dk.row == k.row && dv.row == v.row && dout.row == out.row);
  const auto* graph = tensor_cores_of(stream).attention_backward(
      {.shape = shape, .q_row = q.row, .k_row = k.row, .v_row = v.row, .out_row = out.row});
  if (graph) {
    const float scale = scale_of(shape);
    std::vector<const void*> given{q.data,    k.data,    v.data, out.data,
                                   dout.data, logsumexp, &scale, &one};
    if (shape.mask == Mask::causal) given.push_back(&nothing);
    Tensor taken = stream.make({shape.batch, shape.heads, shape.length});
    const std::vector<void*> made{taken.raw(), dv.data, dk.data, dq.data};
    return run(stream, *graph, given, made);
  }
  const WideHeads wide_q(stream, shape, shape.heads, q), wide_k(stream, shape, shape.kv_heads, k);
  const WideHeads wide_v(stream, shape, shape.kv_heads, v);
  const WideHeads wide_out(stream, shape, shape.heads, out);
  const WideHeads wide_dout(stream, shape, shape.heads, dout);
  WideHeads wide_dq(stream, shape, shape.heads), wide_dk(stream, shape, shape.kv_heads);
  WideHeads wide_dv(stream, shape, shape.kv_heads);
  kernels::attention_backward(stream, shape, wide_q.in(), wide_k.in(), wide_v.in(), wide_out.in(),
                              logsumexp, wide_dout.in(), wide_dq.out(), wide_dk.out(),
                              wide_dv.out());
  wide_dq.round_to(stream, dq);
  wide_dk.round_to(stream, dk);
  wide_dv.round_to(stream, dv);
}

/// The three tensors of a convolution, in numbers.
std::int64_t inputs_of(const Conv2dShape& s) {
  return s.batch * s.in_channels * s.height * s.width;
}
std::int64_t weights_of(const Conv2dShape& s) {
  return s.out_channels * s.in_channels * s.kernel * s.kernel;
}
std::int64_t outputs_of(const Conv2dShape& s) {
  return s.batch * s.out_channels * s.out_height() * s.out_width();
}

Tensor widened(Stream& stream, const BFloat16* x, std::int64_t count) {
  Tensor wide = stream.make({count});
  widen_bf16(stream, x, wide.f32(), count);
  return wide;
}

/// Whether cuDNN has done it.
bool convolved(Stream& stream, cudnn::Kind kind, const Conv2dShape& shape, const BFloat16* a,
               const BFloat16* b, BFloat16* made) {
  const auto* graph =
      tensor_cores_of(stream).convolution(kind, {.shape = shape, .element = cudnn::Element::bf16});
  if (!graph) return false;
  const std::vector<const void*> given{a, b};
  const std::vector<void*> results{made};
  run(stream, *graph, given, results);
  return true;
}

void conv2d_forward_bf16(Stream& stream, const Conv2dShape& shape, const BFloat16* x,
                         const BFloat16* w, BFloat16* y) {
  if (convolved(stream, cudnn::Kind::convolution, shape, x, w, y)) return;
  const Tensor wide_x = widened(stream, x, inputs_of(shape));
  const Tensor wide_w = widened(stream, w, weights_of(shape));
  Tensor wide_y = stream.make({outputs_of(shape)});
  kernels::conv2d_forward(stream, shape, wide_x.f32(), wide_w.f32(), wide_y.f32());
  round_to_bf16(stream, wide_y.f32(), y, wide_y.count());
}

void conv2d_backward_input_bf16(Stream& stream, const Conv2dShape& shape, const BFloat16* w,
                                const BFloat16* dy, BFloat16* dx) {
  if (convolved(stream, cudnn::Kind::convolution_backward_input, shape, w, dy, dx)) return;
  const Tensor wide_w = widened(stream, w, weights_of(shape));
  const Tensor wide_dy = widened(stream, dy, outputs_of(shape));
  Tensor wide_dx = stream.make({inputs_of(shape)});
  kernels::conv2d_backward_input(stream, shape, wide_w.f32(), wide_dy.f32(), wide_dx.f32());
  round_to_bf16(stream, wide_dx.f32(), dx, wide_dx.count());
}

/// No engine of cuDNN 9.19 makes dw in fp32 from bf16: what one micro-batch adds is rounded.
void conv2d_backward_weight_bf16(Stream& stream, const Conv2dShape& shape, const BFloat16* x,
                                 const BFloat16* dy, float* dw) {
  Tensor added = stream.make({weights_of(shape)}, DType::bf16);
  if (convolved(stream, cudnn::Kind::convolution_backward_weight, shape, x, dy,
                added.data<BFloat16>()))
    return add_widened(stream, added.data<BFloat16>(), dw, added.count());
  const Tensor wide_x = widened(stream, x, inputs_of(shape));
  const Tensor wide_dy = widened(stream, dy, outputs_of(shape));
  kernels::conv2d_backward_weight(stream, shape, wide_x.f32(), wide_dy.f32(), dw);
}

}  // namespace

const TensorCoreKernels<BFloat16> bf16_kernels = {
    .multiply = multiply_bf16,
    .bias_backward = add_rounded_rows,
    .attention_forward = attention_forward_bf16,
    .attention_backward = attention_backward_bf16,
    .conv2d_forward = conv2d_forward_bf16,
    .conv2d_backward_input = conv2d_backward_input_bf16,
    .conv2d_backward_weight = conv2d_backward_weight_bf16,
};

}  // namespace troupe::kernels::cuda
