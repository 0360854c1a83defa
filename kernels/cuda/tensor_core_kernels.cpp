#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_queue.h"
#include "kernels/cuda/rounding.h"
#include "kernels/cuda/tensor_cores.h"

// If cuDNN cannot compute something, the fp32 kernels compute it on widened operands and the result
// is rounded. If cuBLASLt cannot fuse something into a product, such as gelu() with erf, a separate
// kernel follows the product. So only the plain product is indispensable.
namespace troupe::kernels::cuda {
namespace {

template <class Number>
using In = Heads<const Number>;
template <class Number>
using Out = Heads<Number>;

using Numbers = std::vector<float>;

/// The arguments of a cuDNN graph: the given tensors, then the given numbers, and the results.
struct GraphWork {
  const cudnn::ReadyGraph* graph = nullptr;
  std::array<const void*, 6> tensors = {};
  std::array<float, 3> numbers = {};
  std::array<void*, 4> made = {};
  std::size_t tensor_count = 0, number_count = 0, made_count = 0;
  void* workspace = nullptr;
};

void give_graph(WorkList::Told told, cudaStream_t queue) {
  const auto work = told.next<GraphWork>();
  std::vector<const void*> given(work.tensors.begin(), work.tensors.begin() + work.tensor_count);
  for (std::size_t i = 0; i < work.number_count; ++i) given.push_back(&work.numbers[i]);
  work.graph->run(given, std::span(work.made).first(work.made_count), work.workspace, queue);
}

void run(Stream& stream, const cudnn::ReadyGraph& graph, std::initializer_list<const void*> tensors,
         const Numbers& numbers, std::initializer_list<void*> made) {
  GraphWork work{.graph = &graph,
                 .tensor_count = tensors.size(),
                 .number_count = numbers.size(),
                 .made_count = made.size()};
  std::ranges::copy(tensors, work.tensors.begin());
  std::ranges::copy(numbers, work.numbers.begin());
  std::ranges::copy(made, work.made.begin());
  Tensor workspace;
  if (graph.workspace() > 0) workspace = stream.make({graph.workspace()}, DType::u8);
  work.workspace = workspace.raw();
  queue_of(stream).give(give_graph, work);
}

using cublas_lt::Epilogue;
using cublas_lt::EpilogueKind;

template <class Number>
void give_product(WorkList::Told told, cudaStream_t queue) {
  auto* cores = told.next<TensorCores*>();
  const auto product = told.next<DeviceProduct<Number>>();
  cores->multiply(product, told.next<Epilogue<Number>>(), queue);
}

/// Multiplies with cuBLASLt. Returns false if it cannot.
template <class Number>
bool multiplied(Stream& stream, const DeviceProduct<Number>& product,
                const Epilogue<Number>& epilogue) {
  auto& cores = tensor_cores_of(stream);
  if (!cores.can_multiply(product, epilogue)) return false;
  queue_of(stream).give(give_product<Number>, &cores, product, epilogue);
  return true;
}

template <class Number>
void multiply_rounded(Stream& stream, const DeviceProduct<Number>& product) {
  if (multiplied<Number>(stream, product, {})) return;
  auto alone = product;  // If the library cannot do this either, it throws its reason.
  const bool has_row = product.start && product.start_stride == 0;
  if (has_row) alone.start = nullptr;
  queue_of(stream).give(give_product<Number>, &tensor_cores_of(stream), alone, Epilogue<Number>());
  if (!has_row) return;
  assert(product.c_stride == product.columns);
  add_row(stream, product.c, product.start, product.c, product.rows, product.columns);
}

/// Returns the sums alone, in fp32.
template <class Number>
Tensor product_of(Stream& stream, DeviceProduct<Number> product) {
  Tensor sums = stream.make({product.rows, product.columns});
  product.c = sums.f32();
  product.c_stride = product.columns;
  multiply_rounded(stream, product);
  return sums;
}

/// Multiplies with an epilogue and a rounded bias in cuBLASLt. Returns false if it cannot.
template <class Number>
bool multiplied_with_bias(Stream& stream, DeviceProduct<Number> product,
                          Epilogue<Number> epilogue) {
  Tensor bias;
  if (product.start) {
    bias = stream.make({product.columns}, dtype_of<Number>);
    round_all(stream, product.start, bias.data<Number>(), product.columns);
    epilogue.bias = bias.data<Number>();
    product.start = nullptr;
  }
  return multiplied(stream, product, epilogue);
}

template <class Number>
void multiply_and_round(Stream& stream, const DeviceProduct<Number>& product, Number* y) {
  if (multiplied_with_bias<Number>(stream, product, {.kind = EpilogueKind::rounded, .result = y}))
    return;
  const Tensor sums = product_of(stream, product);
  round_all(stream, sums.f32(), y, sums.count());
}

template <class Number>
void multiply_to_gelu(Stream& stream, const DeviceProduct<Number>& product, Gelu form, Number* pre,
                      Number* y) {
  // The library has only the tanh form.
  if (form == Gelu::tanh &&
      multiplied_with_bias<Number>(stream, product,
                                   {.kind = EpilogueKind::gelu, .pre = pre, .result = y}))
    return;
  multiply_and_round(stream, product, pre);
  take_gelu(stream, form, pre, y, product.rows * product.columns);
}

template <class Number>
void multiply_by_gelu_slope(Stream& stream, const DeviceProduct<Number>& product, Gelu form,
                            const Number* pre, Number* dpre) {
  if (form == Gelu::tanh &&
      multiplied<Number>(
          stream, product,
          {.kind = EpilogueKind::gelu_slope, .bias = nullptr, .pre = pre, .result = dpre}))
    return;
  multiply_and_round(stream, product, dpre);
  scale_by_gelu_slope(stream, form, pre, dpre, product.rows * product.columns);
}

template <class Number>
void multiply_and_add_up(Stream& stream, const DeviceProduct<Number>& product, Factor which,
                         float* sums) {
  const bool of_a = which == Factor::a;
  const std::int64_t count = of_a ? product.rows : product.columns;
  const auto& factor = of_a ? product.a : product.b;
  assert((of_a ? factor.column_stride : factor.row_stride) == count);
  // The library overwrites the sums, so they are added afterwards.
  Tensor added = stream.make({count});
  const auto kind = of_a ? EpilogueKind::rows_of_a : EpilogueKind::columns_of_b;
  if (multiplied<Number>(stream, product, {.kind = kind, .sums = added.f32()}))
    return accumulate(stream, sums, added.f32(), count);
  multiply_rounded(stream, product);
  add_rounded_rows(stream, factor.data, sums, product.depth, count);
}

/// Heads in fp32, without gaps.
struct WideHeads {
  Tensor numbers;
  std::int64_t rows, columns;

  /// Makes those of queries.
  WideHeads(Stream& stream, const AttentionShape& shape)
      : WideHeads(stream, shape.batch * shape.length, shape.heads * shape.width) {}
  template <class Number>
  WideHeads(Stream& stream, const AttentionShape& shape, Heads<const Number> from)
      : WideHeads(stream, shape) {
    widen_rows(stream, from, numbers.f32(), rows, columns);
  }
  static WideHeads of_keys(Stream& stream, const AttentionShape& shape) {
    return {stream, shape.batch * shape.key_count(), shape.kv_heads * shape.width};
  }
  template <class Number>
  static WideHeads of_keys(Stream& stream, const AttentionShape& shape, Heads<const Number> from) {
    WideHeads made = of_keys(stream, shape);
    widen_rows(stream, from, made.numbers.f32(), made.rows, made.columns);
    return made;
  }
  HeadsIn in() const { return {numbers.f32(), columns}; }
  HeadsOut out() { return {numbers.f32(), columns}; }
  template <class Number>
  void round_to(Stream& stream, Heads<Number> to) const {
    round_rows(stream, numbers.f32(), to, rows, columns);
  }

 private:
  WideHeads(Stream& stream, std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count) {
    numbers = stream.make({rows, columns});
  }
};

float scale_of(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.width));
}
constexpr float nothing = -std::numeric_limits<float>::infinity();

template <class Number>
void attend_rounded(Stream& stream, const AttentionShape& shape, In<Number> q, In<Number> k,
                    In<Number> v, Out<Number> out, float* logsumexp, const AttentionData& data) {
  const auto* graph =
      !shape.is_plain() || data.span
          ? nullptr
          : tensor_cores_of(stream).attention_forward({.shape = shape,
                                                       .q_row = q.row,
                                                       .k_row = k.row,
                                                       .v_row = v.row,
                                                       .out_row = out.row,
                                                       .element = cudnn::element_of<Number>});
  if (graph) {
    const float scale = scale_of(shape);
    const auto numbers = shape.mask == Mask::causal ? Numbers{scale, nothing} : Numbers{scale};
    return run(stream, *graph, {q.data, k.data, v.data}, numbers, {logsumexp, out.data});
  }
  const WideHeads wide_q(stream, shape, q);
  const auto wide_k = WideHeads::of_keys(stream, shape, k);
  const auto wide_v = WideHeads::of_keys(stream, shape, v);
  WideHeads wide_out(stream, shape);
  kernels::attention_forward(stream, shape, wide_q.in(), wide_k.in(), wide_v.in(), wide_out.out(),
                             logsumexp, data);
  wide_out.round_to(stream, out);
}

template <class Number>
void attend_back_rounded(Stream& stream, const AttentionShape& shape, In<Number> q, In<Number> k,
                         In<Number> v, In<Number> out, const float* logsumexp, In<Number> dout,
                         Out<Number> dq, Out<Number> dk, Out<Number> dv, const AttentionData& data,
                         float* dbiases) {
  // Layers use equal layouts for gradients, and the cuDNN graph assumes them.
  assert(dq.row == q.row && dk.row == k.row && dv.row == v.row && dout.row == out.row);
  const auto* graph =
      !shape.is_plain() || data.span
          ? nullptr
          : tensor_cores_of(stream).attention_backward({.shape = shape,
                                                        .q_row = q.row,
                                                        .k_row = k.row,
                                                        .v_row = v.row,
                                                        .out_row = out.row,
                                                        .element = cudnn::element_of<Number>});
  if (graph) {
    const float scale = scale_of(shape);
    const auto numbers =
        shape.mask == Mask::causal ? Numbers{scale, 1, nothing} : Numbers{scale, 1};
    Tensor taken = stream.make({shape.batch, shape.heads, shape.length});
    return run(stream, *graph, {q.data, k.data, v.data, out.data, dout.data, logsumexp}, numbers,
               {taken.raw(), dv.data, dk.data, dq.data});
  }
  const WideHeads wide_q(stream, shape, q);
  const auto wide_k = WideHeads::of_keys(stream, shape, k);
  const auto wide_v = WideHeads::of_keys(stream, shape, v);
  const WideHeads wide_out(stream, shape, out), wide_dout(stream, shape, dout);
  WideHeads wide_dq(stream, shape), wide_dk = WideHeads::of_keys(stream, shape);
  WideHeads wide_dv = WideHeads::of_keys(stream, shape);
  kernels::attention_backward(stream, shape, wide_q.in(), wide_k.in(), wide_v.in(), wide_out.in(),
                              logsumexp, wide_dout.in(), wide_dq.out(), wide_dk.out(),
                              wide_dv.out(), data, dbiases);
  wide_dq.round_to(stream, dq);
  wide_dk.round_to(stream, dk);
  wide_dv.round_to(stream, dv);
}

/// Each returns the number of elements of one of a convolution's tensors.
std::int64_t inputs_of(const Conv2dShape& s) {
  return s.batch * s.in_channels * s.height * s.width;
}
std::int64_t weights_of(const Conv2dShape& s) { return s.weights(); }
std::int64_t outputs_of(const Conv2dShape& s) {
  return s.batch * s.out_channels * s.out_height() * s.out_width();
}

/// Computes a convolution with cuDNN. Returns false if it cannot.
template <class Number>
bool convolved(Stream& stream, cudnn::Kind kind, const Conv2dShape& shape, const Number* a,
               const Number* b, Number* made) {
  const auto* graph = tensor_cores_of(stream).convolution(
      kind, {.shape = shape, .element = cudnn::element_of<Number>});
  if (!graph) return false;
  run(stream, *graph, {a, b}, {}, {made});
  return true;
}

/// A view or widened copy of numbers as floats.
template <class Number>
class Floats {
 public:
  Floats(Stream& stream, const Number* x, std::int64_t count) : wide_(stream.make({count})) {
    widen_all(stream, x, wide_.f32(), count);
  }
  const float* data() const { return wide_.f32(); }

 private:
  Tensor wide_;
};
template <>
class Floats<float> {
 public:
  Floats(Stream&, const float* x, std::int64_t) : x_(x) {}
  const float* data() const { return x_; }

 private:
  const float* x_;
};

/// Calls make(floats) and rounds the floats into y.
template <class Number, class Make>
void make_rounded(Stream& stream, Number* y, std::int64_t count, Make make) {
  if constexpr (std::is_same_v<Number, float>) {
    make(y);
  } else {
    Tensor wide = stream.make({count});
    make(wide.f32());
    round_all(stream, wide.f32(), y, count);
  }
}

template <class Number>
void convolve_forward(Stream& stream, const Conv2dShape& shape, const Number* x, const Number* w,
                      Number* y) {
  if (convolved(stream, cudnn::Kind::convolution, shape, x, w, y)) return;
  const Floats wide_x(stream, x, inputs_of(shape)), wide_w(stream, w, weights_of(shape));
  make_rounded(stream, y, outputs_of(shape), [&](float* wide_y) {
    kernels::conv2d_forward(stream, shape, wide_x.data(), wide_w.data(), wide_y);
  });
}

template <class Number>
void convolve_to_input(Stream& stream, const Conv2dShape& shape, const Number* w, const Number* dy,
                       Number* dx) {
  if (convolved(stream, cudnn::Kind::convolution_backward_input, shape, w, dy, dx)) return;
  const Floats wide_w(stream, w, weights_of(shape)), wide_dy(stream, dy, outputs_of(shape));
  make_rounded(stream, dx, inputs_of(shape), [&](float* wide_dx) {
    kernels::conv2d_backward_input(stream, shape, wide_w.data(), wide_dy.data(), wide_dx);
  });
}

/// No engine of cuDNN 9.19 computes dw in fp32 from 16-bit numbers, so the gradient of one
/// micro-batch is rounded before it is added.
template <class Number>
void convolve_to_weight(Stream& stream, const Conv2dShape& shape, const Number* x, const Number* dy,
                        float* dw) {
  Tensor added = stream.make({weights_of(shape)}, dtype_of<Number>);
  if (convolved(stream, cudnn::Kind::convolution_backward_weight, shape, x, dy,
                added.data<Number>())) {
    if constexpr (std::is_same_v<Number, float>)
      accumulate(stream, dw, added.f32(), added.count());
    else
      add_widened(stream, added.data<Number>(), dw, added.count());
    return;
  }
  const Floats wide_x(stream, x, inputs_of(shape)), wide_dy(stream, dy, outputs_of(shape));
  kernels::conv2d_backward_weight(stream, shape, wide_x.data(), wide_dy.data(), dw);
}

template <class Number>
constexpr TensorCoreKernels<Number> kernels_in_16_bits = {
    .multiply = multiply_rounded<Number>,
    .multiply_and_round = multiply_and_round<Number>,
    .multiply_to_gelu = multiply_to_gelu<Number>,
    .multiply_by_gelu_slope = multiply_by_gelu_slope<Number>,
    .multiply_and_add_up = multiply_and_add_up<Number>,
    .attention_forward = attend_rounded<Number>,
    .attention_backward = attend_back_rounded<Number>,
    .conv2d_forward = convolve_forward<Number>,
    .conv2d_backward_input = convolve_to_input<Number>,
    .conv2d_backward_weight = convolve_to_weight<Number>,
    .layers = layer_kernels<Number>,
    .layer_norm_backward_input_rounded = layer_norm_backward_input_rounded<Number>,
    .rms_norm_backward_input_rounded = rms_norm_backward_input_rounded<Number>,
};

}  // namespace

const TensorCoreKernels<float> tf32_kernels = {
    .multiply = multiply_rounded<float>,
    .conv2d_forward = convolve_forward<float>,
    .conv2d_backward_input = convolve_to_input<float>,
    .conv2d_backward_weight = convolve_to_weight<float>,
};
const TensorCoreKernels<Float16> fp16_kernels = kernels_in_16_bits<Float16>;
const TensorCoreKernels<BFloat16> bf16_kernels = kernels_in_16_bits<BFloat16>;

}  // namespace troupe::kernels::cuda
