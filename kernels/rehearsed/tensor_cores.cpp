// The kernels on tensor cores (kernels/cuda/tensor_core_kernels.cpp) of a rehearsed device. They
// assume that cuBLASLt and cuDNN compute what they compute on a GPU that we support.
#include <array>

#include "kernels/rehearsed/layers.h"

namespace troupe::kernels::rehearsed {
namespace {

// cuBLASLt refuses 16-bit results, and cuDNN refuses heads, whose width is not a multiple of this.
constexpr std::int64_t width_step = 8;

template <class Number>
constexpr Factors factors_of = sizeof(Number) == 2 ? Factors::bits16 : Factors::tf32;

/// Notes a product. cuBLASLt rounds the sums within the product, if their rows are wide enough,
/// with a bias that was rounded before. Otherwise a kernel rounds the sums from memory. The product
/// moves `more` bytes for each sum beyond the sum itself. Returns whether the library fused
/// everything.
template <class Number>
bool note_rounded_product(Stream& stream, std::string_view kernel, DeviceProduct<Number> product,
                          double more) {
  const std::int64_t count = product.rows * product.columns;
  const double rounds = sizeof(float) + sizeof(Number);
  if (product.columns % width_step != 0) {
    take_and_give(stream, {count});
    note(stream, product_call("multiply", product, sizeof(float), factors_of<Number>));
    note_each(stream, "round", count, rounds);
    return false;
  }
  if (product.start) {
    take_and_give(stream, {product.columns}, dtype_of<Number>);
    note_each(stream, "round", product.columns, rounds);
    product.start = nullptr;
    more += sizeof(Number) / real(product.rows);  // The rounded bias.
  }
  note(stream, product_call(kernel, product, sizeof(Number) + more, factors_of<Number>));
  return true;
}

template <class Number>
void multiply(Stream& stream, const DeviceProduct<Number>& product) {
  note(stream, product_call("multiply", product, sizeof(float), factors_of<Number>));
}
template <class Number>
void multiply_and_round(Stream& stream, const DeviceProduct<Number>& product, Number*) {
  note_rounded_product(stream, "multiply_and_round", product, 0);
}
/// The library has only the tanh form of gelu().
template <class Number>
void multiply_to_gelu(Stream& stream, const DeviceProduct<Number>& product, Gelu form, Number* pre,
                      Number* y) {
  const bool is_tanh = form == Gelu::tanh;
  const bool is_fused =
      note_rounded_product(stream, is_tanh ? "multiply_to_gelu" : "multiply_and_round", product,
                           is_tanh ? moved(pre) : 0);
  if (!is_tanh || !is_fused)
    note_each(stream, "gelu_forward", product.rows * product.columns, moved(pre, y));
}
template <class Number>
void multiply_by_gelu_slope(Stream& stream, const DeviceProduct<Number>& product, Gelu form,
                            const Number* pre, Number* dpre) {
  const bool is_tanh = form == Gelu::tanh;
  const bool is_fused =
      note_rounded_product(stream, is_tanh ? "multiply_by_gelu_slope" : "multiply_and_round",
                           product, is_tanh ? moved(pre) : 0);
  if (!is_tanh || !is_fused)
    note_each(stream, "gelu_backward", product.rows * product.columns, moved(pre, dpre, dpre));
}

/// Takes memory for the library's row sums, and for our own in case the library has none.
template <class Number>
void multiply_and_add_up(Stream& stream, const DeviceProduct<Number>& product, Factor which,
                         float* sums) {
  const std::int64_t count = which == Factor::a ? product.rows : product.columns;
  const Tensor added = stream.make({count});
  take_for_row_sums(stream, 1, product.depth, count);
  KernelCall call = product_call("multiply_and_add_up", product, sizeof(float), factors_of<Number>);
  call.bytes += real(count) * sizeof(float);
  note(stream, call);
  note_each(stream, "accumulate", count, moved(sums, sums, added.f32()));
}

/// Returns whether cuDNN has an engine. Without one, heads and their results are widened to fp32.
bool is_cudnns(const AttentionShape& shape, const AttentionData& data) {
  return shape.is_plain() && !data.span && shape.width % width_step == 0;
}
/// The positions in a tile of cuDNN. kernels/cuda/tensor_cores.cpp lists the shapes that we avoid.
constexpr std::int64_t tile = 64;
bool is_cudnns_backward(const AttentionShape& shape, const AttentionData& data) {
  const bool ends_in_half = shape.mask == Mask::full && shape.length % (2 * tile) == tile;
  return is_cudnns(shape, data) && shape.length > 1 && !ends_in_half;
}

/// Notes `times` conversions between 16 bits and fp32 of tensors of `count` numbers.
template <class Number>
void note_conversions(Stream& stream, std::string_view kernel, int times, std::int64_t count) {
  for (int i = 0; i < times; ++i) note_each(stream, kernel, count, sizeof(Number) + sizeof(float));
}

template <class Number>
void attention_forward(Stream& stream, const AttentionShape& shape, Heads<const Number>,
                       Heads<const Number>, Heads<const Number>, Heads<Number>, float* logsumexp,
                       const AttentionData& data) {
  if (is_cudnns(shape, data))
    return note_attention(stream, "attention_forward", shape, 2, 2, 2, sizeof(Number),
                          Factors::bits16);
  const std::int64_t of_q = shape.batch * shape.length * shape.heads * shape.width;
  const std::int64_t of_k = shape.batch * shape.key_count() * shape.kv_heads * shape.width;
  take_and_give(stream, {of_q, of_k, of_k, of_q});
  note_conversions<Number>(stream, "widen", 1, of_q);
  note_conversions<Number>(stream, "widen", 2, of_k);
  kernels::attention_forward(stream, shape, {}, {}, {}, {}, logsumexp, data);
  note_conversions<Number>(stream, "round", 1, of_q);
}
/// To sum in a fixed order, cuDNN needs a 16-bit number for each pair of positions, and memory for
/// dout * out.
template <class Number>
void attention_backward(Stream& stream, const AttentionShape& shape, Heads<const Number>,
                        Heads<const Number>, Heads<const Number>, Heads<const Number>,
                        const float* logsumexp, Heads<const Number>, Heads<Number>, Heads<Number>,
                        Heads<Number>, const AttentionData& data, float* dbiases) {
  const std::int64_t rows = shape.batch * shape.length;
  if (is_cudnns_backward(shape, data)) {
    const Tensor taken = stream.make({rows * shape.heads});
    const std::int64_t padded = (shape.length + tile - 1) / tile * tile;
    take_and_give(stream, {shape.batch * shape.heads * padded * padded}, dtype_of<Number>);
    return note_attention(stream, "attention_backward", shape, 5, 4, 4, sizeof(Number),
                          Factors::bits16);
  }
  const std::int64_t q = rows * shape.heads * shape.width;
  const std::int64_t k = shape.batch * shape.key_count() * shape.kv_heads * shape.width;
  take_and_give(stream, {q, k, k, q, q, q, k, k});
  note_conversions<Number>(stream, "widen", 3, q);
  note_conversions<Number>(stream, "widen", 2, k);
  kernels::attention_backward(stream, shape, {}, {}, {}, {}, logsumexp, {}, {}, {}, {}, data,
                              dbiases);
  note_conversions<Number>(stream, "round", 1, q);
  note_conversions<Number>(stream, "round", 2, k);
}

/// cuDNN's engines want channels innermost, padded to a multiple of `width_step`. They copy all
/// three tensors to that layout. Ignored here: up to 2 MiB for parts of the weights' gradient
/// (tests/cudnn), and GPUs that lack an engine for a shape, since the rehearsal does not know the
/// engines.
template <class Number>
void take_for_convolution(Stream& stream, const Conv2dShape& shape) {
  const auto in_steps = [](std::int64_t channels) {
    return (channels + width_step - 1) / width_step * width_step;
  };
  const std::int64_t in = in_steps(shape.in_channels), out = in_steps(shape.out_channels);
  take_and_give(
      stream,
      {shape.batch * in * shape.height * shape.width, out * in * shape.kernel * shape.kernel,
       shape.batch * out * shape.out_height() * shape.out_width()},
      dtype_of<Number>);
}
template <class Number>
void convolve(Stream& stream, std::string_view kernel, const Conv2dShape& shape) {
  take_for_convolution<Number>(stream, shape);
  note_convolution(stream, kernel, shape, sizeof(Number), sizeof(Number), factors_of<Number>);
}
/// Computes groups in fp32, from widened copies of tensors with `read` numbers. Rounds the result,
/// which has `made` numbers, unless that is 0.
template <class Number>
void convolve_groups(Stream& stream, std::string_view kernel, const Conv2dShape& shape,
                     std::array<std::int64_t, 2> read, std::int64_t made) {
  constexpr bool is_narrow = sizeof(Number) < sizeof(float);
  if (is_narrow && made > 0) take_and_give(stream, {read[0], read[1], made});
  if (is_narrow && made == 0) take_and_give(stream, {read[0], read[1]});
  if (is_narrow)
    for (const auto count : read) note_conversions<Number>(stream, "widen", 1, count);
  const double weights = made > 0 ? sizeof(float) : 2 * sizeof(float);
  note_convolution(stream, kernel, shape, sizeof(float), weights, Factors::fp32);
  if (is_narrow && made > 0) note_conversions<Number>(stream, "round", 1, made);
}
std::int64_t inputs_of(const Conv2dShape& shape) {
  return shape.batch * shape.in_channels * shape.height * shape.width;
}
std::int64_t outputs_of(const Conv2dShape& shape) {
  return shape.batch * shape.out_channels * shape.out_height() * shape.out_width();
}
template <class Number>
void conv2d_forward(Stream& stream, const Conv2dShape& shape, const Number*, const Number*,
                    Number*) {
  if (shape.groups > 1)
    return convolve_groups<Number>(stream, "conv2d_forward", shape,
                                   {inputs_of(shape), shape.weights()}, outputs_of(shape));
  convolve<Number>(stream, "conv2d_forward", shape);
}
template <class Number>
void conv2d_backward_input(Stream& stream, const Conv2dShape& shape, const Number*, const Number*,
                           Number*) {
  if (shape.groups > 1)
    return convolve_groups<Number>(stream, "conv2d_backward_input", shape,
                                   {shape.weights(), outputs_of(shape)}, inputs_of(shape));
  convolve<Number>(stream, "conv2d_backward_input", shape);
}
/// Also takes memory for a micro-batch's gradient, which is computed apart from the sum.
template <class Number>
void conv2d_backward_weight(Stream& stream, const Conv2dShape& shape, const Number*, const Number*,
                            float* dw) {
  const Tensor added = stream.make({shape.weights()}, dtype_of<Number>);
  if (shape.groups > 1)
    return convolve_groups<Number>(stream, "conv2d_backward_weight", shape,
                                   {inputs_of(shape), outputs_of(shape)}, 0);
  convolve<Number>(stream, "conv2d_backward_weight", shape);
  note_each(stream, sizeof(Number) == 2 ? "add_widened" : "accumulate", added.count(),
            moved(dw, dw) + sizeof(Number));
}

template <class Number>
void layer_norm_backward_input_rounded(Stream& stream, const float* x, const float* weight,
                                       const float* mean, const float* rstd, const Number* dy,
                                       const float* more, float* dx, Number* rounded,
                                       std::int64_t rows, std::int64_t columns) {
  note_layer_norm_back(stream, "layer_norm_backward_input_rounded", x, weight, mean, rstd, dy, more,
                       dx, rounded, rows, columns);
}
template <class Number>
void rms_norm_backward_input_rounded(Stream& stream, const float* x, const float* weight,
                                     const float* rstd, const Number* dy, const float* more,
                                     float* dx, Number* rounded, std::int64_t rows,
                                     std::int64_t columns) {
  note_rms_norm_back(stream, "rms_norm_backward_input_rounded", x, weight, rstd, dy, more, dx,
                     rounded, rows, columns);
}

template <class Number>
constexpr TensorCoreKernels<Number> kernels_in_16_bits = {
    .multiply = multiply<Number>,
    .multiply_and_round = multiply_and_round<Number>,
    .multiply_to_gelu = multiply_to_gelu<Number>,
    .multiply_by_gelu_slope = multiply_by_gelu_slope<Number>,
    .multiply_and_add_up = multiply_and_add_up<Number>,
    .attention_forward = attention_forward<Number>,
    .attention_backward = attention_backward<Number>,
    .conv2d_forward = conv2d_forward<Number>,
    .conv2d_backward_input = conv2d_backward_input<Number>,
    .conv2d_backward_weight = conv2d_backward_weight<Number>,
    .layers = layer_kernels<Number>,
    .layer_norm_backward_input_rounded = layer_norm_backward_input_rounded<Number>,
    .rms_norm_backward_input_rounded = rms_norm_backward_input_rounded<Number>,
};

}  // namespace

const TensorCoreKernels<Float16> fp16_kernels = kernels_in_16_bits<Float16>;
const TensorCoreKernels<BFloat16> bf16_kernels = kernels_in_16_bits<BFloat16>;
const TensorCoreKernels<float> tf32_kernels = {
    .multiply = multiply<float>,
    .conv2d_forward = conv2d_forward<float>,
    .conv2d_backward_input = conv2d_backward_input<float>,
    .conv2d_backward_weight = conv2d_backward_weight<float>,
};

}  // namespace troupe::kernels::rehearsed
