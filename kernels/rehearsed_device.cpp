#include "kernels/rehearsed_device.h"

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "kernels/device_kernels.h"
#include "kernels/row_sums.h"

namespace troupe::kernels {
namespace {

/// A stand-in for kernels of any signature that take no memory. It does nothing.
struct LeftOut {
  template <class Made, class... Told>
  using Kernel = Made (*)(Stream&, Told...);

  template <class Made, class... Told>
  constexpr operator Kernel<Made, Told...>() const {
    return [](Stream&, Told...) { return Made(); };
  }
};
constexpr LeftOut left_out;

/// Allocates a tensor of each count, all at once, and frees them.
void take_and_give(Stream& stream, std::initializer_list<std::int64_t> counts,
                   DType type = DType::f32) {
  std::vector<Tensor> taken;
  for (const auto count : counts) taken.push_back(stream.make({count}, type));
}

/// Takes memory for `sums` partial sums per column and piece, if there are several pieces.
void take_for_row_sums(Stream& stream, std::int64_t sums, std::int64_t rows, std::int64_t columns) {
  const std::int64_t pieces = (rows + rows_in_piece - 1) / rows_in_piece;
  if (pieces > 1) take_and_give(stream, {sums * pieces * columns});
}

// Our own kernels (kernels/cuda/*.cu).

void bias_backward(Stream& stream, const float*, float*, std::int64_t rows, std::int64_t columns) {
  take_for_row_sums(stream, 1, rows, columns);
}
template <class Number>
void layer_norm_backward_weight(Stream& stream, const float*, const float*, const float*,
                                const Number*, float*, float*, std::int64_t rows,
                                std::int64_t columns) {
  take_for_row_sums(stream, 2, rows, columns);
}
template <class Number>
void rms_norm_backward_weight(Stream& stream, const float*, const float*, const Number*, float*,
                              std::int64_t rows, std::int64_t columns) {
  take_for_row_sums(stream, 1, rows, columns);
}
/// Takes memory for the rows sorted by token and the number of rows of each token.
void embedding_backward_weight(Stream& stream, const std::int32_t*, const float*, float*,
                               std::int64_t rows, std::int64_t) {
  take_and_give(stream, {2 * rows}, DType::i32);
}
/// Takes `of_all` sums per channel and `of_image` sums per channel and image.
void take_for_channels(Stream& stream, const ImageShape& shape, std::int64_t of_all,
                       std::int64_t of_image) {
  take_and_give(stream, {of_all * shape.channels, of_image * shape.batch * shape.channels},
                DType::f64);
}
void batch_norm_forward(Stream& stream, const ImageShape& shape, const float*, const float*,
                        const float*, float*, float*, float*, float*, float) {
  take_for_channels(stream, shape, 1, 1);
}
void batch_norm_backward_input(Stream& stream, const ImageShape& shape, const float*, const float*,
                               const float*, const float*, const float*, float*) {
  take_for_channels(stream, shape, 2, 2);
}
void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float*, const float*,
                                const float*, const float*, float*, float*) {
  take_for_channels(stream, shape, 2, 2);
}
bool all_finite(Stream& stream, const float*, std::int64_t) {
  take_and_give(stream, {1}, DType::i32);
  return true;
}

// Kernels on tensor cores (kernels/cuda/tensor_core_kernels.cpp).

// cuBLASLt refuses 16-bit results, and cuDNN refuses heads, whose width is not a multiple of this.
constexpr std::int64_t width_step = 8;

/// Takes memory for fp32 sums if cuBLASLt cannot round them within the product. Otherwise takes
/// memory for the rounded bias.
template <class Number>
void take_for_rounding(Stream& stream, const DeviceProduct<Number>& product) {
  if (product.columns % width_step != 0)
    take_and_give(stream, {product.rows * product.columns});
  else if (product.start)
    take_and_give(stream, {product.columns}, dtype_of<Number>);
}
template <class Number>
void multiply_and_round(Stream& stream, const DeviceProduct<Number>& product, Number*) {
  take_for_rounding(stream, product);
}
template <class Number>
void multiply_to_gelu(Stream& stream, const DeviceProduct<Number>& product, Gelu, Number*,
                      Number*) {
  take_for_rounding(stream, product);
}
template <class Number>
void multiply_by_gelu_slope(Stream& stream, const DeviceProduct<Number>& product, Gelu,
                            const Number*, Number*) {
  take_for_rounding(stream, product);
}

/// Takes memory for the library's row sums, and for our own in case the library has none.
template <class Number>
void multiply_and_add_up(Stream& stream, const DeviceProduct<Number>& product, Factor which,
                         float*) {
  const std::int64_t count = which == Factor::a ? product.rows : product.columns;
  const Tensor added = stream.make({count});
  take_for_row_sums(stream, 1, product.depth, count);
}

/// Returns whether cuDNN has an engine. Without one, heads and their results are widened to fp32.
bool is_cudnns(const AttentionShape& shape) { return shape.width % width_step == 0; }
/// The positions in a tile of cuDNN. kernels/cuda/tensor_cores.cpp lists the shapes that we avoid.
constexpr std::int64_t tile = 64;
bool is_cudnns_backward(const AttentionShape& shape) {
  const bool ends_in_half = shape.mask == Mask::full && shape.length % (2 * tile) == tile;
  return is_cudnns(shape) && shape.length > 1 && !ends_in_half;
}

template <class Number>
void attention_forward(Stream& stream, const AttentionShape& shape, Heads<const Number>,
                       Heads<const Number>, Heads<const Number>, Heads<Number>, float*) {
  if (is_cudnns(shape)) return;
  const std::int64_t rows = shape.batch * shape.length;
  const std::int64_t q = rows * shape.heads * shape.width;
  const std::int64_t k = rows * shape.kv_heads * shape.width;
  take_and_give(stream, {q, k, k, q});
}
/// To sum in a fixed order, cuDNN needs a 16-bit number for each pair of positions, and memory for
/// dout * out.
template <class Number>
void attention_backward(Stream& stream, const AttentionShape& shape, Heads<const Number>,
                        Heads<const Number>, Heads<const Number>, Heads<const Number>, const float*,
                        Heads<const Number>, Heads<Number>, Heads<Number>, Heads<Number>) {
  const std::int64_t rows = shape.batch * shape.length;
  if (is_cudnns_backward(shape)) {
    const Tensor taken = stream.make({rows * shape.heads});
    const std::int64_t padded = (shape.length + tile - 1) / tile * tile;
    return take_and_give(stream, {shape.batch * shape.heads * padded * padded}, dtype_of<Number>);
  }
  const std::int64_t q = rows * shape.heads * shape.width;
  const std::int64_t k = rows * shape.kv_heads * shape.width;
  take_and_give(stream, {q, k, k, q, q, q, k, k});
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
void convolve(Stream& stream, const Conv2dShape& shape, const Number*, const Number*, Number*) {
  take_for_convolution<Number>(stream, shape);
}
/// Also takes memory for a micro-batch's gradient, which is computed apart from the sum.
template <class Number>
void convolve_back_to_weight(Stream& stream, const Conv2dShape& shape, const Number*, const Number*,
                             float*) {
  const Tensor added = stream.make(
      {shape.out_channels * shape.in_channels * shape.kernel * shape.kernel}, dtype_of<Number>);
  take_for_convolution<Number>(stream, shape);
}

template <class Number>
constexpr LayerKernels<Number> layer_kernels = {
    .layer_norm_forward = left_out,
    .layer_norm_forward_of_sum = left_out,
    .layer_norm_backward_input = left_out,
    .layer_norm_backward_weight = layer_norm_backward_weight<Number>,
    .rms_norm_forward = left_out,
    .rms_norm_forward_of_sum = left_out,
    .rms_norm_backward_input = left_out,
    .rms_norm_backward_weight = rms_norm_backward_weight<Number>,
    .add = left_out,
    .relu_forward = left_out,
    .relu_backward = left_out,
    .swiglu_forward = left_out,
    .swiglu_backward = left_out,
    .rope = left_out,
    .softmax_cross_entropy = left_out};

template <class Number>
constexpr TensorCoreKernels<Number> kernels_in_16_bits = {
    .multiply = left_out,
    .multiply_and_round = multiply_and_round<Number>,
    .multiply_to_gelu = multiply_to_gelu<Number>,
    .multiply_by_gelu_slope = multiply_by_gelu_slope<Number>,
    .multiply_and_add_up = multiply_and_add_up<Number>,
    .attention_forward = attention_forward<Number>,
    .attention_backward = attention_backward<Number>,
    .conv2d_forward = convolve<Number>,
    .conv2d_backward_input = convolve<Number>,
    .conv2d_backward_weight = convolve_back_to_weight<Number>,
    .layers = layer_kernels<Number>,
    .layer_norm_backward_input_rounded = left_out,
    .rms_norm_backward_input_rounded = left_out,
};
constexpr TensorCoreKernels<Float16> fp16_kernels = kernels_in_16_bits<Float16>;
constexpr TensorCoreKernels<BFloat16> bf16_kernels = kernels_in_16_bits<BFloat16>;
constexpr TensorCoreKernels<float> tf32_kernels = {
    .multiply = left_out,
    .conv2d_forward = convolve<float>,
    .conv2d_backward_input = convolve<float>,
    .conv2d_backward_weight = convolve_back_to_weight<float>,
};

constexpr DeviceKernels all_kernels = {
    .layers = layer_kernels<float>,
    .gelu_forward = left_out,
    .gelu_backward = left_out,
    .add_row = left_out,
    .attention_forward = left_out,
    .attention_backward = left_out,
    .batch_norm_forward = batch_norm_forward,
    .batch_norm_apply = left_out,
    .batch_norm_backward_input = batch_norm_backward_input,
    .batch_norm_backward_weight = batch_norm_backward_weight,
    .average_pool_forward = left_out,
    .average_pool_backward = left_out,
    .conv2d_forward = left_out,
    .conv2d_backward_input = left_out,
    .conv2d_backward_weight = left_out,
    .combine = left_out,
    .multiply_elements = left_out,
    .fill = left_out,
    .copy_rows = left_out,
    .cut_patches = left_out,
    .join_patches = left_out,
    .dropout = left_out,
    .embedding_forward = left_out,
    .embedding_backward_weight = embedding_backward_weight,
    .adam_direction = left_out,
    .adam_forecast = left_out,
    .average_squares = left_out,
    .usual_step = left_out,
    .gap_share = left_out,
    .compensate_delay = left_out,
    .inverses_of_blocks = left_out,
    .multiply = left_out,
    .bias_backward = bias_backward,
    .sgd_step = left_out,
    .adam_step = left_out,
    .squares_of_blocks = left_out,
    .accumulate = left_out,
    .all_finite = all_finite,
    .round_to_f16 = left_out,
    .widen_f16 = left_out,
    .round_to_bf16 = left_out,
    .widen_bf16 = left_out,
    .tf32 = &tf32_kernels,
    .fp16 = &fp16_kernels,
    .bf16 = &bf16_kernels,
};

class RehearsedDevice final : public Device {
 public:
  explicit RehearsedDevice(std::unique_ptr<MemorySource> host) : host_(std::move(host)) {}

  const DeviceKernels& kernels() const override { return all_kernels; }
  void enter() override {}
  void wait() override {}
  Mark mark() override { return ++last_; }
  Result<Mark> passed() override { return last_; }
  Mark follow(Device&, Mark) override { return mark(); }
  void begin_range(const char*) override {}
  void end_range() override {}
  MemoryPlace place() const override { return {0}; }
  MemoryPool& host_memory() override { return host_; }
  void copy(const void*, MemoryPlace, void*, std::size_t) override {}

 private:
  MemoryPool host_;
  Mark last_ = 0;
};

}  // namespace

std::unique_ptr<Device> rehearsed_device(std::unique_ptr<MemorySource> host) {
  return std::make_unique<RehearsedDevice>(std::move(host));
}

}  // namespace troupe::kernels
