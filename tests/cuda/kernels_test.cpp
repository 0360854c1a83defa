// Each GPU kernel gives the bits of the cores.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/device_kernels.h"
#include "kernels/element_loss.h"
#include "kernels/experts.h"
#include "kernels/linear.h"
#include "kernels/linear_gelu.h"
#include "kernels/norm.h"
#include "kernels/pool.h"
#include "kernels/rope.h"
#include "kernels/rounding.h"
#include "kernels/softmax_cross_entropy.h"
#include "same.h"

namespace troupe::kernels {
namespace {

using Made = std::vector<Tensor>;

constexpr float infinity = std::numeric_limits<float>::infinity();

Tensor made(Stream& stream, const Shape& shape, std::uint64_t seed, float most = 1) {
  auto all = numbers(shape.count(), seed);
  for (auto& number : all) number *= most;
  return tensor(stream, all, shape);
}
/// Returns positive numbers.
Tensor positive(Stream& stream, const Shape& shape, std::uint64_t seed) {
  auto all = numbers(shape.count(), seed);
  for (auto& number : all) number = number * number + 1e-6f;
  return tensor(stream, all, shape);
}
Tensor tokens(Stream& stream, std::int64_t count, std::int64_t classes, std::uint64_t seed) {
  Tensor all = Tensor::make(stream.host_memory(), {count}, DType::i32);
  std::uint32_t i = 0;
  for (auto& token : all.numbers<std::int32_t>())
    token = static_cast<std::int32_t>(RandomKey{.seed = seed}.words(i++)[0] %
                                      static_cast<std::uint32_t>(classes));
  return stream.to_here(std::move(all));
}

/// Returns numbers of all magnitudes, including infinities and NaN.
Tensor wild(Stream& stream, std::int64_t count) {
  auto all = numbers(count, 1);
  const std::array special = {0.0f,      -0.0f,    infinity, -infinity, 1e-40f,  -1e-40f,
                              3.402e38f, -3.4e38f, 88.0f,    -88.0f,    -104.0f, 20.0f};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < special.size())
      all[i] = special[i];
    else
      all[i] *= std::exp2(static_cast<float>(i % 31) - 15);
  }
  return tensor(stream, all, {count});
}

TEST_CASE("activations have the bits of the cores") {
  const std::int64_t count = GENERATE(1, 255, 1031);
  for (const Gelu form : {Gelu::erf, Gelu::tanh})
    CHECK(same_on_device([&](Stream& stream) {
      const Tensor x = wild(stream, count);
      Tensor y = stream.make({count}), dx = made(stream, {count}, 2);
      gelu_forward(stream, form, x.f32(), y.f32(), count);
      gelu_backward(stream, form, made(stream, {count}, 1, 12).f32(), dx.f32(), dx.f32(), count);
      return Made{y, dx};
    }));
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor x = wild(stream, count), y_there = made(stream, {count}, 1, 12);
    Tensor y = stream.make({count}), dx = made(stream, {count}, 2);
    relu_forward(stream, x.f32(), y.f32(), count);
    relu_backward(stream, y_there.f32(), dx.f32(), dx.f32(), count);
    return Made{y, dx};
  }));
  CHECK(same_on_device([&](Stream& stream) {
    Tensor gate = made(stream, {count}, 1, 9), up = made(stream, {count}, 2);
    const Tensor dy = made(stream, {count}, 3);
    Tensor y = stream.make({count}), sum = stream.make({count});
    swiglu_forward(stream, gate.f32(), up.f32(), y.f32(), count);
    swiglu_backward(stream, gate.f32(), up.f32(), dy.f32(), gate.f32(), up.f32(), count);
    add(stream, gate.f32(), up.f32(), sum.f32(), count);
    return Made{y, gate, up, sum};
  }));
}

// A thread has more than one number if there are more numbers than threads in a grid.
TEST_CASE("sums and roundings of many numbers have the bits of the cores") {
  const std::int64_t count = (std::int64_t{1} << 20) + 300;
  CHECK(same_on_device([&](Stream& stream) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = 1.0f / static_cast<float>(i + 1);
    Tensor x = tensor(stream, all, {count}), half = stream.make({count}, DType::f16);
    round_all(stream, x.f32(), half.data<Float16>(), count);
    Tensor wide = stream.make({count});
    widen_all(stream, half.data<Float16>(), wide.f32(), count);
    add(stream, wide.f32(), x.f32(), x.f32(), count);
    return Made{wide, x};
  }));
}

TEST_CASE("elementwise kernels have the bits of the cores whatever the alignment") {
  const std::int64_t count = 1031, columns = GENERATE(32, 33), begin = GENERATE(0, 1, 4);
  const std::int64_t rows = count / columns;
  CHECK(same_on_device([&](Stream& stream) {
    const auto some = [&](std::uint64_t seed) { return made(stream, {begin + count}, seed); };
    const Tensor x = some(1), dy = some(2), row = made(stream, {begin + columns}, 3);
    Tensor a = some(4), b = some(5), c = some(6), d = some(7), e = some(8), f = some(9);
    gelu_forward(stream, Gelu::tanh, x.f32() + begin, a.f32() + begin, count);
    gelu_backward(stream, Gelu::tanh, x.f32() + begin, dy.f32() + begin, b.f32() + begin, count);
    relu_forward(stream, x.f32() + begin, c.f32() + begin, count);
    relu_backward(stream, c.f32() + begin, dy.f32() + begin, d.f32() + begin, count);
    swiglu_forward(stream, x.f32() + begin, dy.f32() + begin, e.f32() + begin, count);
    add_row(stream, x.f32() + begin, row.f32() + begin, f.f32() + begin, rows, columns);
    accumulate(stream, f.f32() + begin, a.f32() + begin, count);
    return Made{a, b, c, d, e, f};
  }));
}

TEST_CASE("copies, sums, patches and dropout have the bits of the cores") {
  CHECK(same_on_device([](Stream& stream) {
    const Tensor x = made(stream, {7, 33}, 1), row = made(stream, {33}, 2);
    Tensor y = stream.make({7, 33}), z = stream.make({7, 33}), filled = stream.make({300});
    add_row(stream, x.f32(), row.f32(), y.f32(), 7, 33);
    combine(stream, 0.3f, x.f32(), -1.7f, y.f32(), z.f32(), 7 * 33);
    multiply(stream, x.f32(), z.f32(), 7 * 33);
    fill(stream, 2.5f, filled.f32(), 300);
    copy_rows(stream, {x.f32() + 3, 33}, {filled.f32(), 11}, 7, 10);
    return Made{y, z, filled};
  }));
  CHECK(same_on_device([](Stream& stream) {
    const PatchShape shape{.batch = 3, .channels = 2, .height = 6, .width = 9, .size = 3};
    const Tensor images = made(stream, {3 * 2 * 6 * 9}, 1);
    Tensor patches = stream.make({images.count()}), joined = stream.make({images.count()});
    cut_patches(stream, shape, images.f32(), patches.f32());
    join_patches(stream, shape, patches.f32(), joined.f32());
    return Made{patches, joined};
  }));
  const float rate = GENERATE(0.0f, 0.1f, 0.7f);
  const std::int64_t per_sample = GENERATE(1027, 1028);
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor x = made(stream, {5, per_sample}, 1);
    Tensor y = stream.make({5, per_sample});
    dropout(stream, {.seed = 9, .step = 3, .sample = 11, .operation = 4}, rate, x.f32(), y.f32(), 5,
            per_sample);
    return Made{y};
  }));
}

TEST_CASE("norms have the bits of the cores") {
  struct Size {
    std::int64_t rows, columns;
  };
  // The widths take all kernels: rows in registers, with and without checks, and wider rows.
  const auto size = GENERATE(Size{1, 1}, Size{1, 16}, Size{37, 1}, Size{37, 16}, Size{300, 131},
                             Size{5, 129}, Size{7, 384}, Size{9, 768}, Size{2, 769}, Size{3, 1024},
                             Size{3, 1280}, Size{5, 1600}, Size{5, 1599}, Size{3, 1601},
                             Size{2, 2048}, Size{6, 2049}, Size{17, 2500});
  const auto rows = size.rows, columns = size.columns;
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor x = made(stream, {rows, columns}, 1, 3), dy = made(stream, {rows, columns}, 2);
    const Tensor weight = made(stream, {columns}, 3), bias = made(stream, {columns}, 4);
    Tensor y = stream.make(x.shape()), z = stream.make(x.shape());
    Tensor dx = made(stream, x.shape(), 2), dz = stream.make(x.shape());
    Tensor mean = stream.make({rows}), rstd = stream.make({rows}), root = stream.make({rows});
    Tensor dw = made(stream, {columns}, 5), db = made(stream, {columns}, 6);
    Tensor dg = made(stream, {columns}, 7);
    const Tensor more = made(stream, x.shape(), 8);
    Tensor s = stream.make(x.shape()), sy = stream.make(x.shape()), t = stream.make(x.shape()),
           ty = stream.make(x.shape());
    Tensor smean = stream.make({rows}), srstd = stream.make({rows}), troot = stream.make({rows});
    Tensor ds = stream.make(x.shape()), dr = stream.make(x.shape());
    layer_norm_forward(stream, x.f32(), weight.f32(), bias.f32(), y.f32(), mean.f32(), rstd.f32(),
                       rows, columns, 1e-5f);
    layer_norm_backward_input(stream, x.f32(), weight.f32(), mean.f32(), rstd.f32(), dx.f32(),
                              nullptr, dx.f32(), rows, columns);
    layer_norm_backward_input(stream, x.f32(), weight.f32(), mean.f32(), rstd.f32(), dy.f32(),
                              more.f32(), ds.f32(), rows, columns);
    layer_norm_backward_weight(stream, x.f32(), mean.f32(), rstd.f32(), dy.f32(), dw.f32(),
                               db.f32(), rows, columns);
    layer_norm_forward_of_sum(stream, dy.f32(), x.f32(), s.f32(), weight.f32(), bias.f32(),
                              sy.f32(), smean.f32(), srstd.f32(), rows, columns, 1e-5f);
    rms_norm_forward_of_sum(stream, x.f32(), more.f32(), t.f32(), weight.f32(), ty.f32(),
                            troot.f32(), rows, columns, 1e-6f);
    rms_norm_forward(stream, x.f32(), weight.f32(), z.f32(), root.f32(), rows, columns, 1e-6f);
    rms_norm_backward_input(stream, x.f32(), weight.f32(), root.f32(), dy.f32(), nullptr, dz.f32(),
                            rows, columns);
    rms_norm_backward_input(stream, x.f32(), weight.f32(), root.f32(), dy.f32(), more.f32(),
                            dr.f32(), rows, columns);
    rms_norm_backward_weight(stream, x.f32(), root.f32(), dy.f32(), dg.f32(), rows, columns);
    return Made{y,  mean, rstd, dx, ds,    dw,    db, z,  root, dz,
                dr, dg,   s,    sy, smean, srstd, t,  ty, troot};
  }));
}

TEST_CASE("batch norm and pooling have the bits of the cores") {
  const auto shape = GENERATE(ImageShape{1, 1, 1}, ImageShape{3, 5, 7}, ImageShape{19, 2, 33});
  CHECK(same_on_device([&](Stream& stream) {
    const Shape all{shape.batch, shape.channels, shape.pixels}, one{shape.channels};
    const Tensor x = made(stream, all, 1, 3), dy = made(stream, all, 2);
    const Tensor weight = made(stream, one, 3), bias = made(stream, one, 4);
    const Tensor usual = positive(stream, one, 5);
    Tensor y = stream.make(all), z = stream.make(all), dx = stream.make(all);
    Tensor mean = stream.make(one), rstd = stream.make(one), variance = stream.make(one);
    Tensor dw = made(stream, one, 6), db = made(stream, one, 7);
    batch_norm_forward(stream, shape, x.f32(), weight.f32(), bias.f32(), y.f32(), mean.f32(),
                       rstd.f32(), variance.f32(), 1e-5f);
    batch_norm_apply(stream, shape, x.f32(), weight.f32(), bias.f32(), mean.f32(), usual.f32(),
                     z.f32(), 1e-5f);
    batch_norm_backward_input(stream, shape, x.f32(), weight.f32(), mean.f32(), rstd.f32(),
                              dy.f32(), dx.f32());
    batch_norm_backward_weight(stream, shape, x.f32(), mean.f32(), rstd.f32(), dy.f32(), dw.f32(),
                               db.f32());
    Tensor pooled = stream.make({shape.batch, shape.channels}), spread = stream.make(all);
    average_pool_forward(stream, shape, x.f32(), pooled.f32());
    average_pool_backward(stream, shape, pooled.f32(), spread.f32());
    return Made{y, z, mean, rstd, variance, dx, dw, db, pooled, spread};
  }));
}

TEST_CASE("pools of windows have the bits of the cores") {
  const auto shape = GENERATE(
      PoolShape{.images = 1, .height = 1, .width = 1, .kernel = 1, .stride = 1},
      PoolShape{.images = 6, .height = 9, .width = 7, .kernel = 3, .stride = 2, .padding = 1},
      PoolShape{.images = 5, .height = 12, .width = 33, .kernel = 4, .stride = 3});
  CHECK(same_on_device([&](Stream& stream) {
    const Shape in{shape.images, shape.height, shape.width};
    const Shape out{shape.images, shape.out_height(), shape.out_width()};
    const Tensor x = made(stream, in, 1), dy = made(stream, out, 2);
    Tensor y = stream.make(out), z = stream.make(out), places = stream.make(out, DType::u8);
    Tensor dx = stream.make(in), dz = stream.make(in);
    max_pool_forward(stream, shape, x.f32(), y.f32(), places.data<std::uint8_t>());
    max_pool_backward(stream, shape, dy.f32(), places.data<std::uint8_t>(), dx.f32());
    window_mean_forward(stream, shape, x.f32(), z.f32());
    window_mean_backward(stream, shape, dy.f32(), dz.f32());
    return Made{y, z, dx, dz};  // dx depends on each place.
  }));
}

TEST_CASE("enlarged images have the bits of the cores") {
  const std::int64_t factor = GENERATE(1, 2, 3);
  const PoolShape shape{
      .images = 5, .height = 7 * factor, .width = 9 * factor, .kernel = factor, .stride = factor};
  CHECK(same_on_device([&](Stream& stream) {
    const Shape large{shape.images, shape.height, shape.width};
    const Shape small{shape.images, shape.out_height(), shape.out_width()};
    const Tensor x = made(stream, small, 1), dy = made(stream, large, 2);
    Tensor y = stream.make(large), dx = stream.make(small);
    upsample_forward(stream, shape, x.f32(), y.f32());
    upsample_backward(stream, shape, dy.f32(), dx.f32());
    return Made{y, dx};
  }));
}

TEST_CASE("convolutions have the bits of the cores") {
  const auto shape = GENERATE(Conv2dShape{.batch = 2,
                                          .in_channels = 3,
                                          .height = 7,
                                          .width = 5,
                                          .out_channels = 4,
                                          .kernel = 3,
                                          .stride = 1,
                                          .padding = 1},
                              Conv2dShape{.batch = 3,
                                          .in_channels = 2,
                                          .height = 8,
                                          .width = 9,
                                          .out_channels = 5,
                                          .kernel = 3,
                                          .stride = 2,
                                          .padding = 1},
                              Conv2dShape{.batch = 1,
                                          .in_channels = 4,
                                          .height = 6,
                                          .width = 6,
                                          .out_channels = 3,
                                          .kernel = 1,
                                          .stride = 2,
                                          .padding = 0},
                              Conv2dShape{.batch = 2,
                                          .in_channels = 6,
                                          .height = 5,
                                          .width = 7,
                                          .out_channels = 9,
                                          .kernel = 3,
                                          .stride = 2,
                                          .padding = 1,
                                          .groups = 3},
                              Conv2dShape{.batch = 2,
                                          .in_channels = 5,
                                          .height = 6,
                                          .width = 6,
                                          .out_channels = 5,
                                          .kernel = 3,
                                          .stride = 1,
                                          .padding = 1,
                                          .groups = 5});
  CHECK(same_on_device([&](Stream& stream) {
    const Shape in{shape.batch, shape.in_channels, shape.height, shape.width};
    const Shape out{shape.batch, shape.out_channels, shape.out_height(), shape.out_width()};
    const Shape weights{shape.out_channels, shape.in_channels / shape.groups, shape.kernel,
                        shape.kernel};
    const Tensor x = made(stream, in, 1), w = made(stream, weights, 2), dy = made(stream, out, 3);
    Tensor y = stream.make(out), dx = stream.make(in), dw = made(stream, weights, 4);
    conv2d_forward(stream, shape, x.f32(), w.f32(), y.f32());
    conv2d_backward_input(stream, shape, w.f32(), dy.f32(), dx.f32());
    conv2d_backward_weight(stream, shape, x.f32(), dy.f32(), dw.f32());
    return Made{y, dx, dw};
  }));
}

TEST_CASE("linear layers have the bits of the cores") {
  const std::int64_t rows = GENERATE(1, 65, 257), inputs = GENERATE(1, 17, 70);
  const std::int64_t outputs = GENERATE(1, 66);
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  const auto precision = GENERATE(Precision::fp32, Precision::fp16_chain);
  CHECK(same_on_device([&](Stream& stream) {
    const LinearShape shape{inputs, outputs, layout, precision};
    const Tensor w = made(stream, {inputs * outputs}, 1), bias = made(stream, {outputs}, 2);
    const Tensor full = made(stream, {rows, outputs}, 4);
    const Tensor x = as_operand(stream, made(stream, {rows, inputs}, 3), precision);
    const Tensor dy = as_operand(stream, full, precision);
    Tensor y = stream.make({rows, outputs}), z = stream.make({rows, outputs});
    Tensor dx = stream.make({rows, inputs});
    Tensor dw = made(stream, {inputs * outputs}, 5), fresh = stream.make({inputs * outputs});
    Tensor db = made(stream, {outputs}, 6);
    const PackedLinear packed(stream, shape, w.f32());
    linear_forward(stream, packed, x, bias.f32(), y);
    linear_forward(stream, packed, x, nullptr, z);
    linear_backward_input(stream, packed, dy, dx);
    linear_backward_weight(stream, shape, x, dy, dw.f32(), rows);
    linear_weight_gradient(stream, shape, x, dy, fresh.f32(), rows);
    bias_backward(stream, full.f32(), db.f32(), rows, outputs);
    return Made{y, z, dx, dw, fresh, db};
  }));
}

TEST_CASE("linear layers with gelu have the bits of the cores") {
  const auto form = GENERATE(Gelu::erf, Gelu::tanh);
  const auto precision = GENERATE(Precision::fp32, Precision::fp16_chain, Precision::bf16_pairs);
  CHECK(same_on_device([&](Stream& stream) {
    const std::int64_t rows = 21, width = 18, hidden = 70;
    const Tensor w = made(stream, {width * hidden}, 1), bias = made(stream, {hidden}, 2);
    const Tensor x = as_operand(stream, made(stream, {rows, width}, 3), precision);
    const Tensor dy = as_operand(stream, made(stream, {rows, width}, 4), precision);
    const LinearShape up{width, hidden, WeightLayout::in_out, precision};
    const LinearShape down{hidden, width, WeightLayout::out_in, precision};
    const LinearGelu forward =
        linear_gelu_forward(stream, PackedLinear(stream, up, w.f32()), x, bias.f32(), form);
    const auto gradient =
        linear_gelu_backward(stream, PackedLinear(stream, down, w.f32()), dy, form, forward.pre);
    Tensor dw = stream.make({width * hidden}), db = made(stream, {hidden}, 5);
    linear_backward_parameters(stream, up, x, gradient, nullptr, dw.f32(), db.f32());
    return Made{forward.pre, gradient.for_bias, dw, db};
  }));
}

TEST_CASE("bf16 precisions of the cores have the same bits on a device") {
  const auto precision = GENERATE(Precision::bf16_pairs, Precision::bf16_blocks);
  CHECK(same_on_device([&](Stream& stream) {
    const LinearShape shape{.inputs = 33, .outputs = 18, .precision = precision};
    const Tensor w = made(stream, {33 * 18}, 1);
    const Tensor x = as_operand(stream, made(stream, {5, 33}, 2), precision);
    Tensor y = stream.make({5, 18});
    linear_forward(stream, PackedLinear(stream, shape, w.f32()), x, nullptr, y);
    return Made{y};
  }));
}

TEST_CASE("products of any two matrices have the bits of the cores") {
  const auto transpose = GENERATE(Transpose::none, Transpose::first, Transpose::second);
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor a = made(stream, {67 * 19}, 1), b = made(stream, {19 * 71}, 2);
    Tensor c = stream.make({67, 71});
    matmul(stream, transpose, a.f32(), b.f32(), c.f32(), 67, 71, 19);
    return Made{c};
  }));
}

TEST_CASE("products of large and small tiles have the bits of the cores") {
  // The device that plays a GPU uses large tiles from the second block on. Rows of 132 numbers are
  // aligned to 16 bytes.
  const std::int64_t rows = GENERATE(128, 260), columns = GENERATE(63, 132);
  const std::int64_t depth = GENERATE(1, 8, 37);
  const auto transpose = GENERATE(Transpose::none, Transpose::first, Transpose::second);
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor a = made(stream, {rows * depth}, 1), b = made(stream, {depth * columns}, 2);
    Tensor c = stream.make({rows, columns});
    matmul(stream, transpose, a.f32(), b.f32(), c.f32(), rows, columns, depth);
    return Made{c};
  }));
}

TEST_CASE("attention has the bits of the cores") {
  const auto mask = GENERATE(Mask::full, Mask::causal);
  const std::int64_t length = GENERATE(1, 33, 70, 531);
  const std::int64_t kv_heads = GENERATE(1, 2);
  // The long case tests several blocks of keys, so one batch and few heads are enough.
  const std::int64_t batch = length > 100 ? 1 : 2, heads = length > 100 ? kv_heads : 2, width = 6;
  const bool is_limited = mask == Mask::causal && GENERATE(false, true);
  const std::int64_t window = is_limited ? GENERATE(0, 5, 40) : 0;
  const float cap = is_limited ? 1.5f : 0.0f;
  CHECK(same_on_device([&](Stream& stream) {
    const AttentionShape shape{batch, length, heads, kv_heads, width, mask, window, 0, cap};
    const std::int64_t row = heads * width, kv_row = kv_heads * width;
    const auto some = [&](std::int64_t columns, std::uint64_t seed) {
      return made(stream, {batch * length, columns}, seed, 3);
    };
    const Tensor q = some(row, 1), k = some(kv_row, 2), v = some(kv_row, 3), dout = some(row, 4);
    Tensor out = stream.make(q.shape()), dq = stream.make(q.shape());
    Tensor dk = stream.make(k.shape()), dv = stream.make(v.shape());
    Tensor logsumexp = stream.make({batch, heads, length});
    attention_forward(stream, shape, {q.f32(), row}, {k.f32(), kv_row}, {v.f32(), kv_row},
                      {out.f32(), row}, logsumexp.f32());
    attention_backward(stream, shape, {q.f32(), row}, {k.f32(), kv_row}, {v.f32(), kv_row},
                       {std::as_const(out).f32(), row}, logsumexp.f32(), {dout.f32(), row},
                       {dq.f32(), row}, {dk.f32(), kv_row}, {dv.f32(), kv_row});
    return Made{out, logsumexp, dq, dk, dv};
  }));
}

TEST_CASE("attention with spans, biases and dropout has the bits of the cores") {
  const auto mask = GENERATE(Mask::full, Mask::causal);
  const std::int64_t length = GENERATE(1, 37, 150);
  const bool is_biased = GENERATE(false, true), has_spans = GENERATE(false, true);
  const float rate = GENERATE(0.0f, 0.2f);
  const std::int64_t batch = 2, heads = 2, width = 6;
  AttentionShape shape{.batch = batch,
                       .length = length,
                       .heads = heads,
                       .kv_heads = is_biased ? heads : 1,
                       .width = width,
                       .mask = mask,
                       .keys = mask == Mask::full ? length * 3 + 90 : 0,
                       .rate = rate,
                       .buckets = is_biased ? 8 : 0,
                       .distance = is_biased ? 20 : 0};
  CHECK(same_on_device([&](Stream& stream) {
    const std::int64_t row = heads * width, kv_row = shape.kv_heads * width;
    const std::int64_t keys = shape.key_count();
    const auto some = [&](std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
      return made(stream, {rows, columns}, seed, 3);
    };
    const Tensor q = some(batch * length, row, 1), dout = some(batch * length, row, 4);
    const Tensor k = some(batch * keys, kv_row, 2), v = some(batch * keys, kv_row, 3);
    const Tensor biases = some(8, heads, 5);
    Tensor spans = Tensor::make(stream.host_memory(), {batch, length, 2}, DType::i32);
    for (std::int64_t i = 0; i < batch * length; ++i) {
      const auto first = static_cast<std::int32_t>(i * 7 % keys);
      spans.data<std::int32_t>()[2 * i] = first;
      spans.data<std::int32_t>()[2 * i + 1] =
          i % 5 == 0 ? first : first + static_cast<std::int32_t>(i * 11 % keys);
    }
    const Tensor there = stream.to_here(spans);
    const AttentionData data{.span = has_spans ? there.data<std::int32_t>() : nullptr,
                             .biases = biases.f32(),
                             .key = {.seed = 3, .step = 1, .sample = 2, .operation = 4}};
    Tensor out = stream.make(q.shape()), dq = stream.make(q.shape());
    Tensor dk = stream.make(k.shape()), dv = stream.make(v.shape());
    Tensor logsumexp = stream.make({batch, heads, length});
    Tensor dbiases = made(stream, biases.shape(), 6);
    attention_forward(stream, shape, {q.f32(), row}, {k.f32(), kv_row}, {v.f32(), kv_row},
                      {out.f32(), row}, logsumexp.f32(), data);
    attention_backward(stream, shape, {q.f32(), row}, {k.f32(), kv_row}, {v.f32(), kv_row},
                       {std::as_const(out).f32(), row}, logsumexp.f32(), {dout.f32(), row},
                       {dq.f32(), row}, {dk.f32(), kv_row}, {dv.f32(), kv_row}, data,
                       dbiases.f32());
    return Made{out, logsumexp, dq, dk, dv, dbiases};
  }));
}

TEST_CASE("soft caps have the bits of the cores") {
  CHECK(same_on_device([](Stream& stream) {
    const Tensor x = made(stream, {1003}, 1, 20), dy = made(stream, {1003}, 2);
    Tensor y = stream.make(x.shape()), dx = stream.make(x.shape());
    softcap_forward(stream, 3.5f, x.f32(), y.f32(), x.count());
    softcap_backward(stream, 3.5f, std::as_const(y).f32(), dy.f32(), dx.f32(), x.count());
    return Made{y, dx};
  }));
}

TEST_CASE("rotary positions have the bits of the cores") {
  CHECK(same_on_device([](Stream& stream) {
    Tensor x = made(stream, {2 * 301, 3 * 12}, 1), y = made(stream, {2 * 301, 3 * 12}, 2);
    rope(stream, Rotation::forward, {x.f32(), 36}, 2, 301, 3, 12, {.theta = 10'000});
    rope(stream, Rotation::back, {y.f32(), 36}, 2, 301, 3, 12, {.theta = 500'000});
    return Made{x, y};
  }));
  CHECK(same_on_device([](Stream& stream) {
    Tensor x = made(stream, {2 * 301, 3 * 12}, 1), y = made(stream, {2 * 301, 3 * 12}, 2);
    rope(stream, Rotation::forward, {x.f32(), 36}, 2, 301, 3, 12,
         {.part = 8, .pairs = RopeForm::Pairs::neighbours});
    rope(stream, Rotation::back, {y.f32(), 36}, 2, 301, 3, 12,
         {.scaling = RopeForm::Scaling::llama3, .factor = 8, .context = 128});
    rope(stream, Rotation::forward, {y.f32(), 36}, 2, 301, 3, 12,
         {.scaling = RopeForm::Scaling::yarn, .factor = 8, .low = 1, .high = 4, .stretch = 1.2f});
    return Made{x, y};
  }));
}

TEST_CASE("the loss and its gradient have the bits of the cores") {
  // A row of 9,001 classes is not aligned to 16 bytes. One of 9,000 or more is kept in shared
  // memory; one of 60,000 does not fit there.
  const std::int64_t rows = GENERATE(1, 5);
  const std::int64_t classes = GENERATE(2, 131, 9000, 9001, 12'296, 50'304, 60'000);
  const auto first_target = static_cast<std::int32_t>(RandomKey{.seed = 2}.words(0)[0] %
                                                      static_cast<std::uint32_t>(classes));
  const CrossEntropyForm form =
      GENERATE_COPY(CrossEntropyForm{}, CrossEntropyForm{.ignore = first_target, .z = 1e-3f},
                    CrossEntropyForm{.ignore = first_target, .smoothing = 0.1f, .z = 1e-3f});
  CHECK(same_on_device([&](Stream& stream) {
    Tensor logits = made(stream, {rows, classes}, 1, 20);
    const Tensor targets = tokens(stream, rows, classes, 2);
    Tensor losses = stream.make({rows}), alone = stream.make({rows});
    const auto* wanted = targets.data<std::int32_t>();
    softmax_cross_entropy(stream, logits.f32(), wanted, alone.f32(), nullptr, rows, classes, 1,
                          form);
    softmax_cross_entropy(stream, logits.f32(), wanted, losses.f32(), logits.f32(), rows, classes,
                          0.25f, form);
    return Made{alone, losses, logits};
  }));
}

TEST_CASE("losses of numbers and their gradients have the bits of the cores") {
  const std::int64_t count = GENERATE(1, 5, 4096, 70'001);
  const auto loss = GENERATE(ElementLoss::binary, ElementLoss::squared);
  CHECK(same_on_device([&](Stream& stream) {
    Tensor z = made(stream, {count}, 1, 20);
    auto all = numbers(count, 2);
    for (std::size_t i = 0; i < all.size(); i += 7) all[i] = std::bit_cast<float>(0x7fc00000);
    const Tensor targets = tensor(stream, all, {count});
    Tensor losses = stream.make({count}), alone = stream.make({count});
    element_loss(stream, loss, z.f32(), targets.f32(), alone.f32(), nullptr, count, 1);
    element_loss(stream, loss, z.f32(), targets.f32(), losses.f32(), z.f32(), count, 0.25f);
    return Made{alone, losses, z};
  }));
}

TEST_CASE("logits of minus infinity have the bits of the cores") {
  // All logits of the second chunk are -infinity.
  const std::int64_t classes = GENERATE(9001, 12'288);
  CHECK(same_on_device([&](Stream& stream) {
    auto all = numbers(classes, 1);
    std::fill(all.begin() + 4096, all.begin() + 8192, -infinity);
    Tensor logits = tensor(stream, all, {1, classes});
    const Tensor targets = tokens(stream, 1, 4096, 2);
    Tensor losses = stream.make({1});
    softmax_cross_entropy(stream, logits.f32(), targets.data<std::int32_t>(), losses.f32(),
                          logits.f32(), 1, classes, 0.25f);
    return Made{losses, logits};
  }));
}

TEST_CASE("a NaN as GPUs make it reaches the loss and the gradient of its row") {
  const auto device = open_device();
  if (!device) return;
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const std::int64_t classes = GENERATE(131, 9001, 12'288);
  auto all = numbers(2 * classes, 1);
  all[77] = std::bit_cast<float>(0x7fffffff);
  Tensor logits = tensor(stream, all, {2, classes});
  const Tensor targets = tokens(stream, 2, classes, 2);
  Tensor losses = stream.make({2});
  softmax_cross_entropy(stream, logits.f32(), targets.data<std::int32_t>(), losses.f32(),
                        logits.f32(), 2, classes, 0.25f);
  std::vector<float> found;
  append(found, stream, losses);
  CHECK(std::isnan(found[0]));
  CHECK_FALSE(std::isnan(found[1]));
  found.clear();
  append(found, stream, logits);
  const auto is_nan = [](float number) { return std::isnan(number); };
  CHECK(std::all_of(found.begin(), found.begin() + classes, is_nan));
  CHECK(std::none_of(found.begin() + classes, found.end(), is_nan));
}

TEST_CASE("embeddings have the bits of the cores") {
  // With many words most rows have one use or none; with few words each has many.
  const std::int64_t words = GENERATE(1, 11, 1000), columns = GENERATE(1, 37, 300);
  CHECK(same_on_device([&](Stream& stream) {
    const std::int64_t rows = 301;
    const Tensor which = tokens(stream, rows, words, 1), dy = made(stream, {rows, columns}, 2);
    const Tensor table = made(stream, {words, columns}, 3);
    Tensor y = stream.make({rows, columns}), dtable = made(stream, {words, columns}, 4);
    embedding_forward(stream, table.f32(), which.data<std::int32_t>(), y.f32(), rows, columns);
    embedding_backward_weight(stream, which.data<std::int32_t>(), dy.f32(), dtable.f32(), rows,
                              columns);
    return Made{y, dtable};
  }));
}

namespace {

/// Memory for a choice of experts.
struct Routed {
  Tensor probabilities, logsumexp, weights, chosen, places, sorted, bounds;

  Routed(Stream& stream, const RouterShape& shape)
      : probabilities(stream.make({shape.tokens, shape.experts})),
        logsumexp(stream.make({shape.tokens})),
        weights(stream.make({shape.rows()})),
        chosen(stream.make({shape.rows()}, DType::i32)),
        places(stream.make({shape.rows()}, DType::i32)),
        sorted(stream.make({shape.rows()}, DType::i32)),
        bounds(stream.make({shape.experts + 1}, DType::i32)) {}

  Routes pointers() {
    return {probabilities.f32(),         logsumexp.f32(),
            chosen.data<std::int32_t>(), weights.f32(),
            places.data<std::int32_t>(), sorted.data<std::int32_t>(),
            bounds.data<std::int32_t>()};
  }
};

}  // namespace

TEST_CASE("experts have the bits of the cores") {
  // More experts than one launch takes; and so few tokens that most experts have no rows.
  const auto [tokens, experts, top] =
      GENERATE(std::array{1, 1, 1}, std::array{131, 5, 2}, std::array{40, 70, 3});
  const auto precision = GENERATE(Precision::fp32, Precision::fp16_chain, Precision::bf16_pairs);
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  const bool begins = GENERATE(true, false);
  const RouterShape shape{
      .tokens = tokens, .experts = experts, .top = top, .renormalise = top == 2};
  const LinearShape of{33, 68, layout, precision};
  CHECK(same_on_device([&](Stream& stream) {
    Routed routed(stream, shape);
    const Tensor logits = made(stream, {shape.tokens, shape.experts}, 1, 4);
    route(stream, shape, logits.f32(), routed.pointers());
    const Tensor table = made(stream, {shape.tokens, of.inputs}, 2);
    Tensor x = stream.make({shape.rows(), of.inputs});
    embedding_forward(stream, table.f32(), routed.sorted.data<std::int32_t>(), x.f32(),
                      shape.rows(), of.inputs);
    std::vector<PackedLinear> packed;
    std::vector<Tensor> dw;
    for (std::int64_t e = 0; e < shape.experts; ++e) {
      const auto seed = static_cast<std::uint64_t>(10 + e);
      packed.emplace_back(stream, of, made(stream, {of.inputs, of.outputs}, seed).f32());
      dw.push_back(made(stream, {of.inputs, of.outputs}, seed + 100));
    }
    std::vector<const PackedLinear*> matrices;
    std::vector<ExpertGradient> gradients;
    for (std::size_t e = 0; e < packed.size(); ++e) {
      matrices.push_back(&packed[e]);
      gradients.push_back({e == 3 ? nullptr : dw[e].f32(), begins});
    }
    const Tensor operand = as_operand(stream, x, precision);
    Tensor rows = stream.make({shape.rows(), of.outputs});
    experts_forward(stream, matrices, routed.bounds, operand, rows);
    Tensor y = stream.make({shape.tokens, of.outputs}), drows = stream.make(rows.shape());
    sum_experts(stream, shape, routed.places.data<std::int32_t>(), routed.weights.f32(), rows.f32(),
                y.f32(), of.outputs);
    const Tensor dy = made(stream, y.shape(), 3);
    Tensor dweights = stream.make({shape.rows()});
    sum_experts_backward(stream, shape, routed.places.data<std::int32_t>(), routed.weights.f32(),
                         rows.f32(), dy.f32(), drows.f32(), dweights.f32(), of.outputs);
    Tensor dlogits = stream.make(logits.shape());
    route_backward(stream, shape, routed.pointers(), dweights.f32(), {0.1f, 0.2f}, dlogits.f32());
    const Tensor gradient = as_operand(stream, drows, precision);
    Tensor dx = stream.make(x.shape()), dtable = stream.make(table.shape());
    experts_backward_input(stream, matrices, routed.bounds, gradient, dx);
    sum_experts(stream, shape, routed.places.data<std::int32_t>(), nullptr, dx.f32(), dtable.f32(),
                of.inputs);
    experts_backward_weight(stream, of, gradients, routed.bounds, operand, gradient);
    Made all{routed.probabilities, routed.logsumexp, x, rows, y, drows, dweights, dlogits, dtable};
    for (const auto& one : dw) all.push_back(one);
    return all;
  }));
}

TEST_CASE("steps of optimizers have the bits of the cores") {
  const std::int64_t count = GENERATE(1, 1000, 1003);
  const bool has_shares = GENERATE(false, true);
  const auto momentum =
      GENERATE(SgdStep::Momentum::plain, SgdStep::Momentum::nesterov, SgdStep::Momentum::shares);
  const auto decay = GENERATE(WeightDecay::coupled, WeightDecay::decoupled);
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor w = made(stream, {count}, 1), g = made(stream, {count}, 2);
    const Tensor shares = positive(stream, {count}, 3);
    const float* share = has_shares ? shares.f32() : nullptr;
    Tensor m = made(stream, {count}, 4), v = positive(stream, {count}, 5);
    Tensor moved = made(stream, {count}, 6), by_sgd = stream.make({count});
    Tensor by_adam = stream.make({count}), plain = stream.make({count});
    const SgdStep sgd{.lr = 0.1,
                      .momentum = 0.9,
                      .weight_decay = 0.01,
                      .gradient_scale = 0.7,
                      .kind = momentum,
                      .turn = SgdStep::Turn::later,
                      .momentum_share = 0.8,
                      .gradient_share = 0.3};
    sgd_step(stream, sgd, w.f32(), g.f32(), moved.f32(), by_sgd.f32(), count, share);
    sgd_step(stream, sgd, w.f32(), g.f32(), nullptr, plain.f32(), count, share);
    const AdamStep adam{.lr = 0.01,
                        .beta1 = 0.9,
                        .beta2 = 0.95,
                        .eps = 1e-8,
                        .weight_decay = 0.1,
                        .gradient_scale = 0.7,
                        .m_scale = 3,
                        .g_scale = 0.2,
                        .v_scale = 2,
                        .decay = decay};
    adam_step(stream, adam, w.f32(), g.f32(), m.f32(), v.f32(), by_adam.f32(), count, share);
    accumulate(stream, plain.f32(), by_adam.f32(), count);
    return Made{by_sgd, moved, by_adam, m, v, plain};
  }));
}

TEST_CASE("remedies for late gradients have the bits of the cores") {
  const std::int64_t count = 1000;
  const auto decay = GENERATE(WeightDecay::coupled, WeightDecay::decoupled);
  const auto second =
      GENERATE(AdamForecast::SecondMoment::guarded, AdamForecast::SecondMoment::frozen);
  CHECK(same_on_device([&](Stream& stream) {
    const Tensor w = made(stream, {count}, 1), m = made(stream, {count}, 2);
    const Tensor v = positive(stream, {count}, 3), phi = made(stream, {count}, 4);
    Tensor along = stream.make({count}), ahead = stream.make({count}),
           average = positive(stream, {count}, 5);
    Tensor usual = stream.make({count}), share = stream.make({count}), g = made(stream, {count}, 6);
    adam_direction(stream, {1.5, 2.5, 1e-8}, m.f32(), v.f32(), along.f32(), count);
    const std::vector<AdamForecast::Step> steps = {{0.1, 2, 3}, {0.05, 1.5, 2}, {0.02, 1.2, 1.7}};
    adam_forecast(stream, {steps, 0.9, 0.999, 1e-8, 0.1, decay, second}, w.f32(), m.f32(), v.f32(),
                  phi.f32(), ahead.f32(), count);
    average_squares(stream, {0.99, 0.5}, m.f32(), average.f32(), count);
    usual_step(stream, {0.1, 1e-6}, average.f32(), usual.f32(), count);
    const GapBetween<float> gap{w.f32(), ahead.f32(), average.f32()};
    Tensor mended = made(stream, {count}, 7);
    gap_share(stream, {0.1, 1e-6}, gap, share.f32(), nullptr, count);
    gap_share(stream, {0.2, 1e-6}, gap, nullptr, mended.f32(), count);
    compensate_delay(stream, 0.4, w.f32(), ahead.f32(), g.f32(), count);
    return Made{along, ahead, average, usual, share, mended, g};
  }));
}

TEST_CASE("squares of many tensors have the bits of the cores") {
  // Sizes around one number per lane, the loads of a lane at once, and a block. Tensors do not
  // begin at multiples of 16 bytes.
  std::vector<std::int64_t> sizes = {0,   1,   15, 16,     17,     511,    512,    513,
                                     527, 528, 0,  65'535, 65'536, 65'537, 140'001};
  const std::size_t many = GENERATE(15, 128, 129, 300);
  while (sizes.size() < many) sizes.push_back(static_cast<std::int64_t>(sizes.size() * 7 % 1000));
  std::int64_t count = 0, blocks = 0;
  for (const auto size : sizes) {
    count += size;
    blocks += blocks_of_sums(size);
  }
  const auto on = [&](Stream& stream) {
    const Tensor all = wild(stream, count);
    std::vector<std::span<const float>> tensors;
    const float* at = all.f32();
    for (const auto size : sizes) {
      tensors.emplace_back(at, static_cast<std::size_t>(size));
      at += size;
    }
    Tensor sums = stream.make({blocks}, DType::f64);
    squares_of_blocks(stream, tensors, sums.data<double>());
    const Tensor here = stream.to_host(std::move(sums));
    stream.wait();
    const auto found = here.numbers<double>();
    return std::vector<double>(found.begin(), found.end());
  };
  const auto device = open_device();
  if (!device) return;
  MemoryPool host, memory(device_memory());
  Stream cores(host), stream(memory, *device);
  CHECK(on(stream) == on(cores));
}

TEST_CASE("reductions over many numbers have the bits of the cores") {
  const std::int64_t count = GENERATE(1, 65'536, 140'001);
  const auto device = open_device();
  if (!device) return;
  MemoryPool host, memory(device_memory());
  Stream cores(host), stream(memory, *device);
  const auto on = [&](Stream& where) { return positive(where, {count}, 1); };
  Tensor here = on(cores), there = on(stream);
  CHECK(sum_of_squares(cores, here.f32(), count) == sum_of_squares(stream, there.f32(), count));
  const auto inverses = [&](Stream& where, const Tensor& x) {
    Tensor blocks = where.make({blocks_of_sums(count), 2}, DType::f64);
    inverses_of_blocks(where, x.f32(), count, static_cast<Inverses*>(blocks.raw()));
    const Tensor read = where.to_host(std::move(blocks));
    where.wait();
    return std::vector<double>(read.numbers<double>().begin(), read.numbers<double>().end());
  };
  CHECK(inverses(stream, there) == inverses(cores, here));
  CHECK(all_finite(stream, there.f32(), count));
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    here.f32()[count / 2] = bad;
    there = stream.to_here(here);
    CHECK_FALSE(all_finite(stream, there.f32(), count));
  }
}

}  // namespace
}  // namespace troupe::kernels
