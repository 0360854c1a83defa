// The kernels of layer_kernels.h of a rehearsed device.
#pragma once

#include "kernels/layer_kernels.h"
#include "kernels/rehearsed/calls.h"

namespace troupe::kernels::rehearsed {

/// Returns the bytes of rows with `of_number` bytes per number and `of_row` bytes per row.
inline double bytes_of_rows(std::int64_t rows, std::int64_t columns, double of_number,
                            double of_row) {
  return real(rows * columns) * of_number + real(rows) * of_row;
}

template <class Number>
void layer_norm_forward(Stream& stream, const float* x, const float* weight, const float* bias,
                        Number* y, float* mean, float* rstd, std::int64_t rows,
                        std::int64_t columns, float) {
  note(stream, {.kernel = "layer_norm_forward",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(x, y), moved(mean, rstd)) +
                         real(columns) * moved(weight, bias)});
}
template <class Number>
void layer_norm_forward_of_sum(Stream& stream, const Number* a, const float* b, float* sum,
                               const float* weight, const float* bias, Number* y, float* mean,
                               float* rstd, std::int64_t rows, std::int64_t columns, float) {
  note(stream, {.kernel = "layer_norm_forward_of_sum",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(a, b, sum, y), moved(mean, rstd)) +
                         real(columns) * moved(weight, bias)});
}
/// Notes a backward pass to the input. `more` and `rounded` may be null.
template <class Number>
void note_layer_norm_back(Stream& stream, std::string_view kernel, const float* x,
                          const float* weight, const float* mean, const float* rstd,
                          const Number* dy, const float* more, float* dx, Number* rounded,
                          std::int64_t rows, std::int64_t columns) {
  note(stream,
       {.kernel = kernel,
        .sizes = {rows, columns},
        .bytes = bytes_of_rows(rows, columns, moved(x, dy, more, dx, rounded), moved(mean, rstd)) +
                 real(columns) * moved(weight)});
}
template <class Number>
void layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                               const float* mean, const float* rstd, const Number* dy,
                               const float* more, float* dx, std::int64_t rows,
                               std::int64_t columns) {
  note_layer_norm_back<Number>(stream, "layer_norm_backward_input", x, weight, mean, rstd, dy, more,
                               dx, nullptr, rows, columns);
}
template <class Number>
void layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                const float* rstd, const Number* dy, float* dweight, float* dbias,
                                std::int64_t rows, std::int64_t columns) {
  const double pieces = take_for_row_sums(stream, 2, rows, columns);
  note(stream, {.kernel = "layer_norm_backward_weight",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(x, dy), moved(mean, rstd)) + pieces +
                         real(columns) * moved(dweight, dweight, dbias, dbias)});
}
template <class Number>
void rms_norm_forward(Stream& stream, const float* x, const float* weight, Number* y, float* rstd,
                      std::int64_t rows, std::int64_t columns, float) {
  note(stream, {.kernel = "rms_norm_forward",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(x, y), moved(rstd)) +
                         real(columns) * moved(weight)});
}
template <class Number>
void rms_norm_forward_of_sum(Stream& stream, const Number* a, const float* b, float* sum,
                             const float* weight, Number* y, float* rstd, std::int64_t rows,
                             std::int64_t columns, float) {
  note(stream, {.kernel = "rms_norm_forward_of_sum",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(a, b, sum, y), moved(rstd)) +
                         real(columns) * moved(weight)});
}
template <class Number>
void note_rms_norm_back(Stream& stream, std::string_view kernel, const float* x,
                        const float* weight, const float* rstd, const Number* dy, const float* more,
                        float* dx, Number* rounded, std::int64_t rows, std::int64_t columns) {
  note(stream,
       {.kernel = kernel,
        .sizes = {rows, columns},
        .bytes = bytes_of_rows(rows, columns, moved(x, dy, more, dx, rounded), moved(rstd)) +
                 real(columns) * moved(weight)});
}
template <class Number>
void rms_norm_backward_input(Stream& stream, const float* x, const float* weight, const float* rstd,
                             const Number* dy, const float* more, float* dx, std::int64_t rows,
                             std::int64_t columns) {
  note_rms_norm_back<Number>(stream, "rms_norm_backward_input", x, weight, rstd, dy, more, dx,
                             nullptr, rows, columns);
}
template <class Number>
void rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd, const Number* dy,
                              float* dweight, std::int64_t rows, std::int64_t columns) {
  const double pieces = take_for_row_sums(stream, 1, rows, columns);
  note(stream, {.kernel = "rms_norm_backward_weight",
                .sizes = {rows, columns},
                .bytes = bytes_of_rows(rows, columns, moved(x, dy), moved(rstd)) + pieces +
                         real(columns) * moved(dweight, dweight)});
}
template <class Number>
void add(Stream& stream, const Number* a, const float* b, float* y, std::int64_t count) {
  note_each(stream, "add", count, moved(a, b, y));
}
template <class Number>
void relu_forward(Stream& stream, const Number* x, Number* y, std::int64_t count) {
  note_each(stream, "relu_forward", count, moved(x, y));
}
template <class Number>
void relu_backward(Stream& stream, const Number* y, const Number* dy, Number* dx,
                   std::int64_t count) {
  note_each(stream, "relu_backward", count, moved(y, dy, dx));
}
template <class Number>
void swiglu_forward(Stream& stream, const Number* gate, const Number* up, Number* y,
                    std::int64_t count) {
  note_each(stream, "swiglu_forward", count, moved(gate, up, y));
}
template <class Number>
void swiglu_backward(Stream& stream, const Number* gate, const Number* up, const Number* dy,
                     Number* dgate, Number* dup, std::int64_t count) {
  note_each(stream, "swiglu_backward", count, moved(gate, up, dy, dgate, dup));
}
template <class Number>
void rope(Stream& stream, Rotation, Heads<Number> x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, const RopeForm&, std::int64_t) {
  note(stream, {.kernel = "rope",
                .sizes = {batch, length, heads, width},
                .bytes = real(batch * length * heads * width) * moved(x.data, x.data)});
}
template <class Number>
void softmax_cross_entropy(Stream& stream, const Number* logits, const std::int32_t* targets,
                           float* losses, Number* dlogits, std::int64_t rows, std::int64_t classes,
                           float, const CrossEntropyForm&) {
  note(stream,
       {.kernel = "softmax_cross_entropy",
        .sizes = {rows, classes},
        .bytes = bytes_of_rows(rows, classes, moved(logits, dlogits), moved(targets, losses))});
}
template <class Number>
void element_loss(Stream& stream, ElementLoss, const Number* z, const float* targets, float* losses,
                  Number* dz, std::int64_t count, float) {
  note_each(stream, "element_loss", count, moved(z, targets, losses, dz));
}

template <class Number>
constexpr LayerKernels<Number> layer_kernels = {
    .layer_norm_forward = layer_norm_forward<Number>,
    .layer_norm_forward_of_sum = layer_norm_forward_of_sum<Number>,
    .layer_norm_backward_input = layer_norm_backward_input<Number>,
    .layer_norm_backward_weight = layer_norm_backward_weight<Number>,
    .rms_norm_forward = rms_norm_forward<Number>,
    .rms_norm_forward_of_sum = rms_norm_forward_of_sum<Number>,
    .rms_norm_backward_input = rms_norm_backward_input<Number>,
    .rms_norm_backward_weight = rms_norm_backward_weight<Number>,
    .add = add<Number>,
    .relu_forward = relu_forward<Number>,
    .relu_backward = relu_backward<Number>,
    .swiglu_forward = swiglu_forward<Number>,
    .swiglu_backward = swiglu_backward<Number>,
    .rope = rope<Number>,
    .softmax_cross_entropy = softmax_cross_entropy<Number>,
    .element_loss = element_loss<Number>};

}  // namespace troupe::kernels::rehearsed
