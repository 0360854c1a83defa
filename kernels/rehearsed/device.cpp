#include "kernels/rehearsed/device.h"

#include <algorithm>
#include <utility>

#include "kernels/rehearsed/calls.h"
#include "kernels/rehearsed/layers.h"

namespace troupe::kernels::rehearsed {
namespace {

// Our own kernels (kernels/cuda/*.cu).

void softcap_forward(Stream& stream, float, const float* x, float* y, std::int64_t count) {
  note_each(stream, "softcap_forward", count, moved(x, y));
}
void softcap_backward(Stream& stream, float, const float* y, const float* dy, float* dx,
                      std::int64_t count) {
  note_each(stream, "softcap_backward", count, moved(y, dy, dx));
}
void gelu_forward(Stream& stream, Gelu, const float* x, float* y, std::int64_t count) {
  note_each(stream, "gelu_forward", count, moved(x, y));
}
void gelu_backward(Stream& stream, Gelu, const float* x, const float* dy, float* dx,
                   std::int64_t count) {
  note_each(stream, "gelu_backward", count, moved(x, dy, dx));
}
void add_row(Stream& stream, const float* x, const float* row, float* y, std::int64_t rows,
             std::int64_t columns) {
  note(stream, {.kernel = "add_row",
                .sizes = {rows, columns},
                .bytes = real(rows * columns) * moved(x, y) + real(columns) * moved(row)});
}

void own_attention_forward(Stream& stream, const AttentionShape& shape, HeadsIn, HeadsIn, HeadsIn,
                           HeadsOut, float*, const AttentionData&) {
  if (shape.buckets > 0) take_and_give(stream, {shape.heads * shape.diagonals()});
  note_attention(stream, "attention_forward", shape, 2, 2, 2, sizeof(float), Factors::fp32);
}
/// The gradients of queries, those of keys and those of biases compute the scores and their
/// gradients separately.
void own_attention_backward(Stream& stream, const AttentionShape& shape, HeadsIn, HeadsIn, HeadsIn,
                            HeadsIn, const float*, HeadsIn, HeadsOut, HeadsOut, HeadsOut,
                            const AttentionData&, float*) {
  const bool is_biased = shape.buckets > 0;
  if (is_biased) {
    const std::int64_t pieces = (shape.length + rows_in_piece - 1) / rows_in_piece;
    const std::int64_t columns = shape.key_count() + rows_in_piece - 1;
    take_and_give(stream,
                  {shape.heads * shape.diagonals(), shape.batch * shape.heads * pieces * columns,
                   shape.diagonals(), shape.batch * shape.buckets * shape.heads});
  }
  note_attention(stream, "attention_backward", shape, is_biased ? 9 : 7, 4, 4, sizeof(float),
                 Factors::fp32);
}

/// Notes a kernel of images that moves `of_pixel` bytes per pixel and `of_channel` per channel.
void note_images(Stream& stream, std::string_view kernel, const ImageShape& shape, double of_pixel,
                 double of_channel) {
  note(stream, {.kernel = kernel,
                .sizes = {shape.batch, shape.channels, shape.pixels},
                .bytes = real(shape.batch * shape.channels * shape.pixels) * of_pixel +
                         real(shape.channels) * of_channel});
}
/// Takes memory for `of_all` sums per channel and `of_image` sums per channel and image.
void take_for_channels(Stream& stream, const ImageShape& shape, std::int64_t of_all,
                       std::int64_t of_image) {
  take_and_give(stream, {of_all * shape.channels, of_image * shape.batch * shape.channels},
                DType::f64);
}
void batch_norm_forward(Stream& stream, const ImageShape& shape, const float* x,
                        const float* weight, const float* bias, float* y, float* mean, float* rstd,
                        float* variance, float) {
  take_for_channels(stream, shape, 1, 1);
  note_images(stream, "batch_norm_forward", shape, moved(x, y),
              moved(weight, bias, mean, rstd, variance));
}
void batch_norm_apply(Stream& stream, const ImageShape& shape, const float* x, const float* weight,
                      const float* bias, const float* mean, const float* variance, float* y,
                      float) {
  note_images(stream, "batch_norm_apply", shape, moved(x, y), moved(weight, bias, mean, variance));
}
void batch_norm_backward_input(Stream& stream, const ImageShape& shape, const float* x,
                               const float* weight, const float* mean, const float* rstd,
                               const float* dy, float* dx) {
  take_for_channels(stream, shape, 2, 2);
  note_images(stream, "batch_norm_backward_input", shape, moved(x, dy, dx),
              moved(weight, mean, rstd));
}
void batch_norm_backward_weight(Stream& stream, const ImageShape& shape, const float* x,
                                const float* mean, const float* rstd, const float* dy,
                                float* dweight, float* dbias) {
  take_for_channels(stream, shape, 2, 2);
  note_images(stream, "batch_norm_backward_weight", shape, moved(x, dy),
              moved(mean, rstd, dweight, dweight, dbias, dbias));
}
void average_pool_forward(Stream& stream, const ImageShape& shape, const float* x, float* y) {
  note_images(stream, "average_pool_forward", shape, moved(x), real(shape.batch) * moved(y));
}
void average_pool_backward(Stream& stream, const ImageShape& shape, const float* dy, float* dx) {
  note_images(stream, "average_pool_backward", shape, moved(dx), real(shape.batch) * moved(dy));
}

/// Notes a pool that moves `of_pixel` bytes per pixel of the images and `of_output` per output.
void note_pool(Stream& stream, std::string_view kernel, const PoolShape& shape, double of_pixel,
               double of_output) {
  note(stream, {.kernel = kernel,
                .sizes = {shape.images, shape.height, shape.width, shape.kernel, shape.stride},
                .bytes = real(shape.images * shape.height * shape.width) * of_pixel +
                         real(shape.outputs()) * of_output});
}
void max_pool_forward(Stream& stream, const PoolShape& shape, const float* x, float* y,
                      std::uint8_t* places) {
  note_pool(stream, "max_pool_forward", shape, moved(x), moved(y, places));
}
void max_pool_backward(Stream& stream, const PoolShape& shape, const float* dy,
                       const std::uint8_t* places, float* dx) {
  note_pool(stream, "max_pool_backward", shape, moved(dx), moved(dy, places));
}
void window_mean_forward(Stream& stream, const PoolShape& shape, const float* x, float* y) {
  note_pool(stream, "window_mean_forward", shape, moved(x), moved(y));
}
void window_mean_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx) {
  note_pool(stream, "window_mean_backward", shape, moved(dx), moved(dy));
}
void upsample_forward(Stream& stream, const PoolShape& shape, const float* x, float* y) {
  note_pool(stream, "upsample_forward", shape, moved(y), moved(x));
}
void upsample_backward(Stream& stream, const PoolShape& shape, const float* dy, float* dx) {
  note_pool(stream, "upsample_backward", shape, moved(dy), moved(dx));
}

void own_conv2d_forward(Stream& stream, const Conv2dShape& shape, const float*, const float* w,
                        float*) {
  note_convolution(stream, "conv2d_forward", shape, sizeof(float), moved(w), Factors::fp32);
}
void own_conv2d_backward_input(Stream& stream, const Conv2dShape& shape, const float* w,
                               const float*, float*) {
  note_convolution(stream, "conv2d_backward_input", shape, sizeof(float), moved(w), Factors::fp32);
}
void own_conv2d_backward_weight(Stream& stream, const Conv2dShape& shape, const float*,
                                const float*, float* dw) {
  note_convolution(stream, "conv2d_backward_weight", shape, sizeof(float), moved(dw, dw),
                   Factors::fp32);
}

void combine(Stream& stream, float, const float* x, float, const float* z, float* y,
             std::int64_t count) {
  note_each(stream, "combine", count, moved(x, z, y));
}
void multiply_elements(Stream& stream, const float* x, float* y, std::int64_t count) {
  note_each(stream, "multiply_elements", count, moved(x, y, y));
}
void fill(Stream& stream, float, float* y, std::int64_t count) {
  note_each(stream, "fill", count, moved(y));
}
void copy_rows(Stream& stream, RowsIn from, RowsOut to, std::int64_t rows, std::int64_t columns) {
  const std::int64_t rows_read = from.stride == 0 ? std::min<std::int64_t>(rows, 1) : rows;
  note(stream, {.kernel = "copy_rows",
                .sizes = {rows, columns},
                .bytes = real(rows_read * columns) * moved(from.data) +
                         real(rows * columns) * moved(to.data)});
}
void note_patches(Stream& stream, std::string_view kernel, const PatchShape& shape, double bytes) {
  note(stream, {.kernel = kernel,
                .sizes = {shape.batch, shape.channels, shape.height, shape.width, shape.size},
                .bytes = real(shape.batch * shape.channels * shape.height * shape.width) * bytes});
}
void cut_patches(Stream& stream, const PatchShape& shape, const float* images, float* patches) {
  note_patches(stream, "cut_patches", shape, moved(images, patches));
}
void join_patches(Stream& stream, const PatchShape& shape, const float* patches, float* images) {
  note_patches(stream, "join_patches", shape, moved(patches, images));
}

void dropout(Stream& stream, const RandomKey&, float, const float* x, float* y,
             std::int64_t samples, std::int64_t per_sample) {
  note_each(stream, "dropout", samples * per_sample, moved(x, y));
}
void embedding_forward(Stream& stream, const float* table, const std::int32_t* tokens, float* y,
                       std::int64_t rows, std::int64_t columns) {
  note(stream, {.kernel = "embedding_forward",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(table, y), moved(tokens))});
}
/// Takes memory for the rows sorted by token and the number of rows of each token. The bytes of the
/// table are not counted: how many of its rows change depends on the tokens.
void embedding_backward_weight(Stream& stream, const std::int32_t* tokens, const float* dy, float*,
                               std::int64_t rows, std::int64_t columns) {
  const Tensor order = stream.make({2 * rows}, DType::i32);
  const auto* numbers = order.data<std::int32_t>();
  note(stream, {.kernel = "embedding_backward_weight",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(dy),
                                       moved(tokens, numbers, numbers, numbers, numbers))});
}

/// Takes memory for the number of rows of each expert in each piece of the rows.
void route(Stream& stream, const RouterShape& shape, const float* logits, const Routes& routes) {
  take_and_give(stream, {shape.experts * experts_sorted_in}, DType::i32);
  note(stream, {.kernel = "route",
                .sizes = {shape.tokens, shape.experts, shape.top},
                .bytes = real(shape.tokens * shape.experts) * moved(logits, routes.probabilities) +
                         real(shape.tokens) * moved(routes.logsumexp) +
                         real(shape.rows()) * moved(routes.chosen, routes.chosen, routes.weights,
                                                    routes.places, routes.tokens)});
}
void route_backward(Stream& stream, const RouterShape& shape, const Routes& routes,
                    const float* dweights, const RouterLosses&, float* dlogits) {
  note(stream, {.kernel = "route_backward",
                .sizes = {shape.tokens, shape.experts, shape.top},
                .bytes = real(shape.tokens * shape.experts) * moved(routes.probabilities, dlogits) +
                         real(shape.rows()) * moved(routes.chosen, routes.weights, dweights)});
}
void sum_experts(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                 const float* weights, const float* rows, float* y, std::int64_t columns) {
  note(stream, {.kernel = "sum_experts",
                .sizes = {shape.tokens, shape.top, columns},
                .bytes = bytes_of_rows(shape.rows(), columns, moved(rows), moved(places, weights)) +
                         real(shape.tokens * columns) * moved(y)});
}
void sum_experts_backward(Stream& stream, const RouterShape& shape, const std::int32_t* places,
                          const float* weights, const float* rows, const float* dy, float* drows,
                          float* dweights, std::int64_t columns) {
  note(stream, {.kernel = "sum_experts_backward",
                .sizes = {shape.tokens, shape.top, columns},
                .bytes = bytes_of_rows(shape.rows(), columns, moved(rows, dy, drows),
                                       moved(places, weights, dweights))});
}
/// Each expert's matrix is read once.
template <class Number, Factors factors = Factors::fp32>
void multiply_experts(Stream& stream, const DeviceExperts<Number>& product,
                      std::span<const Number* const> matrices) {
  const double rows = real(product.rows), columns = real(product.columns),
               depth = real(product.depth);
  note(stream, {.kernel = "multiply_experts",
                .sizes = {product.rows, product.columns, product.depth},
                .bytes = (rows * depth + static_cast<double>(matrices.size()) * depth * columns) *
                             sizeof(Number) +
                         rows * columns * moved(product.y),
                .operations = 2 * rows * columns * depth,
                .factors = factors});
}
template <class Number, Factors factors = Factors::fp32>
void gradients_of_experts(Stream& stream, const DeviceExpertGradients<Number>& product,
                          std::span<const ExpertGradient> gradients) {
  const double rows = real(product.rows), height = real(product.a_columns),
               width = real(product.b_columns);
  double written = 0;
  for (const auto& [dw, begins] : gradients)
    if (dw) written += height * width * (begins ? moved(dw) : moved(dw, dw));
  note(stream, {.kernel = "gradients_of_experts",
                .sizes = {product.rows, product.a_columns, product.b_columns},
                .bytes = rows * (height + width) * sizeof(Number) + written,
                .operations = 2 * rows * height * width,
                .factors = factors});
}

void adam_direction(Stream& stream, const AdamDirection&, const float* m, const float* v, float* y,
                    std::int64_t count) {
  note_each(stream, "adam_direction", count, moved(m, v, y));
}
void adam_forecast(Stream& stream, const AdamForecast&, const float* w, const float* m,
                   const float* v, const float* phi, float* y, std::int64_t count) {
  note_each(stream, "adam_forecast", count, moved(w, m, v, phi, y));
}
void average_squares(Stream& stream, const SquareAverage&, const float* x, float* average,
                     std::int64_t count) {
  note_each(stream, "average_squares", count, moved(x, average, average));
}
void usual_step(Stream& stream, const UsualStep&, const float* x, float* y, std::int64_t count) {
  note_each(stream, "usual_step", count, moved(x, y));
}
void gap_share(Stream& stream, const UsualStep&, const GapBetween<float>& gap, float* share,
               float* gradient, std::int64_t count) {
  note_each(stream, "gap_share", count,
            moved(gap.now, gap.then, gap.spread, share, gradient, gradient));
}
void compensate_delay(Stream& stream, double, const float* now, const float* then, float* g,
                      std::int64_t count) {
  note_each(stream, "compensate_delay", count, moved(now, then, g, g));
}
void inverses_of_blocks(Stream& stream, const float* x, std::int64_t count, Inverses* blocks) {
  note(stream, {.kernel = "inverses_of_blocks",
                .sizes = {count},
                .bytes = real(count) * moved(x) + real(blocks_of_sums(count)) * moved(blocks)});
}

void multiply(Stream& stream, const DeviceProduct<float>& product) {
  note(stream, product_call("multiply", product, sizeof(float), Factors::fp32));
}
void bias_backward(Stream& stream, const float* dy, float* db, std::int64_t rows,
                   std::int64_t columns) {
  const double pieces = take_for_row_sums(stream, 1, rows, columns);
  note(stream,
       {.kernel = "bias_backward",
        .sizes = {rows, columns},
        .bytes = real(rows * columns) * moved(dy) + real(columns) * moved(db, db) + pieces});
}

void sgd_step(Stream& stream, const SgdStep& step, const float* w, const float* gradient,
              float* momentum, float* next, std::int64_t count, const float* decay_share) {
  const float* read = step.turn == SgdStep::Turn::first ? nullptr : momentum;
  note_each(stream, "sgd_step", count, moved(w, gradient, read, momentum, next, decay_share));
}
void adam_step(Stream& stream, const AdamStep&, const float* w, const float* gradient, float* m,
               float* v, float* next, std::int64_t count, const float* decay_share) {
  note_each(stream, "adam_step", count, moved(w, gradient, m, m, v, v, next, decay_share));
}
void squares_of_blocks(Stream& stream, std::span<const std::span<const float>> tensors,
                       double* sums) {
  std::int64_t count = 0, blocks = 0;
  for (const auto& tensor : tensors) {
    count += static_cast<std::int64_t>(tensor.size());
    blocks += blocks_of_sums(static_cast<std::int64_t>(tensor.size()));
  }
  note(stream, {.kernel = "squares_of_blocks",
                .sizes = {count},
                .bytes = real(count) * sizeof(float) + real(blocks) * moved(sums)});
}
void accumulate(Stream& stream, float* a, const float* b, std::int64_t count) {
  note_each(stream, "accumulate", count, moved(a, a, b));
}
bool all_finite(Stream& stream, const float* x, std::int64_t count) {
  take_and_give(stream, {1}, DType::i32);
  note_each(stream, "all_finite", count, moved(x));
  return true;
}

template <class Number>
void round_all(Stream& stream, const float* x, Number* y, std::int64_t count) {
  note_each(stream, "round", count, moved(x, y));
}
template <class Number>
void widen_all(Stream& stream, const Number* x, float* y, std::int64_t count) {
  note_each(stream, "widen", count, moved(x, y));
}

constexpr DeviceKernels all_kernels = {
    .layers = layer_kernels<float>,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .softcap_forward = softcap_forward,
    .softcap_backward = softcap_backward,
    .add_row = add_row,
    .attention_forward = own_attention_forward,
    .attention_backward = own_attention_backward,
    .batch_norm_forward = batch_norm_forward,
    .batch_norm_apply = batch_norm_apply,
    .batch_norm_backward_input = batch_norm_backward_input,
    .batch_norm_backward_weight = batch_norm_backward_weight,
    .average_pool_forward = average_pool_forward,
    .average_pool_backward = average_pool_backward,
    .max_pool_forward = max_pool_forward,
    .max_pool_backward = max_pool_backward,
    .window_mean_forward = window_mean_forward,
    .window_mean_backward = window_mean_backward,
    .upsample_forward = upsample_forward,
    .upsample_backward = upsample_backward,
    .conv2d_forward = own_conv2d_forward,
    .conv2d_backward_input = own_conv2d_backward_input,
    .conv2d_backward_weight = own_conv2d_backward_weight,
    .combine = combine,
    .multiply_elements = multiply_elements,
    .fill = fill,
    .copy_rows = copy_rows,
    .cut_patches = cut_patches,
    .join_patches = join_patches,
    .dropout = dropout,
    .embedding_forward = embedding_forward,
    .embedding_backward_weight = embedding_backward_weight,
    .route = route,
    .route_backward = route_backward,
    .sum_experts = sum_experts,
    .sum_experts_backward = sum_experts_backward,
    .experts_f32 = {multiply_experts<float>, gradients_of_experts<float>},
    .experts_f16 = {multiply_experts<Float16>, gradients_of_experts<Float16>},
    .experts_bf16 = {multiply_experts<BFloat16>, gradients_of_experts<BFloat16>},
    .experts_on_tensor_cores_f16 = {multiply_experts<Float16, Factors::bits16>,
                                    gradients_of_experts<Float16, Factors::bits16>},
    .experts_on_tensor_cores_bf16 = {multiply_experts<BFloat16, Factors::bits16>,
                                     gradients_of_experts<BFloat16, Factors::bits16>},
    .adam_direction = adam_direction,
    .adam_forecast = adam_forecast,
    .average_squares = average_squares,
    .usual_step = usual_step,
    .gap_share = gap_share,
    .compensate_delay = compensate_delay,
    .inverses_of_blocks = inverses_of_blocks,
    .multiply = multiply,
    .bias_backward = bias_backward,
    .sgd_step = sgd_step,
    .adam_step = adam_step,
    .squares_of_blocks = squares_of_blocks,
    .accumulate = accumulate,
    .all_finite = all_finite,
    .round_to_f16 = round_all<Float16>,
    .widen_f16 = widen_all<Float16>,
    .round_to_bf16 = round_all<BFloat16>,
    .widen_bf16 = widen_all<BFloat16>,
    .tf32 = &tf32_kernels,
    .fp16 = &fp16_kernels,
    .bf16 = &bf16_kernels,
};

}  // namespace

const DeviceKernels& RehearsedDevice::kernels() const { return all_kernels; }

}  // namespace troupe::kernels::rehearsed

namespace troupe::kernels {

std::unique_ptr<Device> rehearsed_device(std::unique_ptr<MemorySource> host,
                                         std::vector<KernelCall>* calls) {
  return std::make_unique<rehearsed::RehearsedDevice>(std::move(host), calls);
}

}  // namespace troupe::kernels
