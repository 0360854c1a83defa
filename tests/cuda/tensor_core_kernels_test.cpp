// Kernels on tensor cores, computed by libraries in their own order. They are compared within
// rounding errors, not bit by bit.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention.h"
#include "kernels/conv2d.h"
#include "kernels/experts.h"
#include "kernels/linear.h"
#include "kernels/linear_gelu.h"
#include "kernels/rounding.h"
#include "same.h"

namespace troupe::kernels {
namespace {

/// Sums of so few terms have only their own rounding error.
constexpr double in_fp32 = 1e-5;
/// Rounded to 8 or 11 bits several times.
constexpr double rounded_to(DType type) {
  return type == DType::bf16 ? 2e-2 : type == DType::f16 ? 2.5e-3 : in_fp32;
}

/// A device's stream, and the cores for comparison.
struct Both {
  std::unique_ptr<Device> device = open_tensor_cores();
  MemoryPool host, shared{device ? device_memory() : host_memory()};
  Stream cores{host};

  /// Returns numbers that this precision represents exactly; for tf32 those of fp16.
  Tensor made(Precision precision, const Shape& shape, std::uint64_t seed) {
    const DType type = is_bf16(precision) ? DType::bf16 : DType::f16;
    const auto all = numbers(shape.count(), seed);
    return as_type(cores, as_type(cores, tensor(cores, all, shape), type), DType::f32);
  }
  Tensor there(Stream& stream, const Tensor& numbers, DType type) {
    Tensor copy = stream.make(numbers.shape());
    stream.copy(numbers, copy);
    return as_type(stream, copy, type);
  }
  /// Returns a tensor with one number in all places.
  Tensor full_of(Stream& stream, const Shape& shape, float number, DType type) {
    const std::vector<float> all(static_cast<std::size_t>(shape.count()), number);
    return there(stream, tensor(cores, all, shape), type);
  }
  /// Returns whether the results differ by at most `difference` times the largest number.
  bool near(Stream& stream, const Tensor& found, const Tensor& wanted, double difference) {
    const Tensor wide = stream.to_host(as_type(stream, found, DType::f32));
    stream.wait();
    double most = 0;
    for (std::int64_t i = 0; i < wanted.count(); ++i)
      most = std::max(most, std::abs(double{wanted.f32()[i]}));
    for (std::int64_t i = 0; i < wanted.count(); ++i)
      if (!(std::abs(double{wide.f32()[i]} - wanted.f32()[i]) <= difference * most)) {
        UNSCOPED_INFO("at " << i << " of " << wanted.count() << ": " << wide.f32()[i] << ", wanted "
                            << wanted.f32()[i]);
        return false;
      }
    return true;
  }
};

float first_of(Stream& stream, const Tensor& made) {
  const Tensor here = stream.to_host(as_type(stream, made, DType::f32));
  stream.wait();
  return here.f32()[0];
}

TEST_CASE("conversions between fp32 and 16 bits have the bits of the cores") {
  const auto type = GENERATE(DType::bf16, DType::f16);
  CHECK(same_on_device([&](Stream& stream) {
    std::vector<float> all = numbers(1000, 1);
    for (const float edge : {0.0f, -0.0f, 1e-40f, 3e-8f, 6e-8f, 65504.0f, 65519.0f, 65520.0f,
                             3.4e38f, INFINITY, -INFINITY, NAN})
      all.push_back(edge);
    const Tensor x = tensor(stream, all, {static_cast<std::int64_t>(all.size())});
    return std::vector{as_type(stream, as_type(stream, x, type), DType::f32)};
  }));
}

bool same_bits(Stream& stream, const Tensor& one, const Tensor& other) {
  std::vector<float> of_one, of_other;
  append(of_one, stream, one);
  append(of_other, stream, other);
  return std::ranges::equal(of_one, of_other, has_bits_of);
}

/// The rows of experts, one expert's behind the other's.
struct ExpertRows {
  std::vector<std::int32_t> bounds{0};

  explicit ExpertRows(const std::vector<int>& counts) {
    for (const int count : counts) bounds.push_back(bounds.back() + count);
  }
  std::int64_t count() const { return bounds.back(); }
  Tensor in(Stream& stream) const {
    Stream cores = stream.of_cores();
    Tensor here = cores.make({static_cast<std::int64_t>(bounds.size())}, DType::i32);
    std::copy(bounds.begin(), bounds.end(), here.data<std::int32_t>());
    Tensor there = stream.make(here.shape(), DType::i32);
    stream.copy(here, there);
    stream.wait();
    return there;
  }
};

TEST_CASE("experts on tensor cores equal those of the cores on rounded numbers") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  // One square of sums and several, a part of the depth and several, and sizes without packs.
  const auto [inputs, outputs] =
      GENERATE(std::array{8, 24}, std::array{40, 136}, std::array{136, 40}, std::array{33, 68});
  const auto [layout, begins] =
      GENERATE(std::pair{WeightLayout::out_in, true}, std::pair{WeightLayout::in_out, false});
  std::vector<int> counts{130, 0, 3, 1, 20};
  if (inputs == 8) counts.resize(66);  // More than one launch takes.
  counts.back() += 2;
  const ExpertRows rows(counts);
  CAPTURE(to_string(precision), inputs, outputs, layout == WeightLayout::in_out, begins);
  const auto experts = rows.bounds.size() - 1;
  const Tensor x = both.made(precision, {rows.count(), inputs}, 1);
  const Tensor dy = both.made(precision, {rows.count(), outputs}, 2);
  std::vector<Tensor> w, before;
  for (std::size_t e = 0; e < experts; ++e) {
    w.push_back(both.made(precision, {inputs * outputs}, 10 + e));
    before.push_back(both.made(precision, {inputs * outputs}, 200 + e));
  }
  struct Results {
    Tensor y, dx;
    std::vector<Tensor> dw;
  };
  const auto on = [&](Stream& stream, Precision in) {
    const LinearShape shape{inputs, outputs, layout, in};
    const auto copy = [&](const Tensor& numbers) {
      return both.there(stream, numbers, DType::f32);
    };
    Results made{stream.make({rows.count(), outputs}), stream.make({rows.count(), inputs}), {}};
    std::vector<PackedLinear> packed;
    std::vector<const PackedLinear*> matrices;
    std::vector<ExpertGradient> gradients;
    for (std::size_t e = 0; e < experts; ++e) {
      const Tensor weights = copy(w[e]);
      packed.emplace_back(stream, shape, weights.f32());
      made.dw.push_back(copy(before[e]));
    }
    for (std::size_t e = 0; e < experts; ++e) {
      matrices.push_back(&packed[e]);
      gradients.push_back({e == 3 ? nullptr : made.dw[e].f32(), begins});
    }
    const Tensor bounds = rows.in(stream);
    const Tensor from = as_operand(stream, copy(x), in), back = as_operand(stream, copy(dy), in);
    experts_forward(stream, matrices, bounds, from, made.y);
    experts_backward_input(stream, matrices, bounds, back, made.dx);
    experts_backward_weight(stream, shape, gradients, bounds, from, back);
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, Precision::fp32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, precision);
  CHECK(both.near(stream, found.y, wanted.y, in_fp32));
  CHECK(both.near(stream, found.dx, wanted.dx, in_fp32));
  for (std::size_t e = 0; e < experts; ++e)
    CHECK(both.near(stream, found.dw[e], wanted.dw[e], in_fp32));
}

TEST_CASE("a row of an expert on tensor cores has the same bits in any company") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::fp16_gpu, Precision::bf16_gpu);
  const LinearShape shape{72, 40, WeightLayout::in_out, precision};
  Stream stream(both.shared, *both.device);
  const Tensor weights = both.there(stream, both.made(precision, {72 * 40}, 1), DType::f32);
  const PackedLinear packed(stream, shape, weights.f32());
  const std::vector<const PackedLinear*> matrices{&packed};
  const Tensor x = both.made(precision, {140, shape.inputs}, 2);
  const auto results = [&](std::int64_t first, std::int64_t count) {
    const ExpertRows rows({static_cast<int>(count)});
    const Tensor some = x.slice(first, count);
    const Tensor from = as_operand(stream, both.there(stream, some, DType::f32), precision);
    Tensor y = stream.make({count, shape.outputs});
    experts_forward(stream, matrices, rows.in(stream), from, y);
    stream.wait();
    return y;
  };
  const Tensor all = results(0, 140);
  CHECK(same_bits(stream, results(131, 1), all.slice(131, 1)));
  CHECK(same_bits(stream, results(0, 140), all));
}

TEST_CASE("linear layers on tensor cores equal those of the cores on rounded numbers") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  const std::int64_t rows = GENERATE(1, 5, 300), inputs = GENERATE(1, 17, 40);
  const std::int64_t outputs = GENERATE(1, 24, 33);
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  CAPTURE(to_string(precision), rows, inputs, outputs, layout == WeightLayout::in_out);
  const Tensor w = both.made(precision, {inputs * outputs}, 1),
               bias = both.made(precision, {outputs}, 2);
  const Tensor x = both.made(precision, {rows, inputs}, 3),
               dy = both.made(precision, {rows, outputs}, 4);
  const Tensor before = both.made(precision, {inputs * outputs}, 5),
               db_before = both.made(precision, {outputs}, 6);
  const Tensor dx_before = both.made(precision, {rows, inputs}, 7);

  struct Results {
    Tensor y, plain, dx, dx_added, dw, fresh, dw_with_db, db_with_dw, fresh_with_db, db_with_fresh;
    Tensor rounded_y, rounded_plain, rounded_dx;  // In the type of activations.
  };
  const auto on = [&](Stream& stream, Precision in) {
    const LinearShape shape{inputs, outputs, layout, in};
    const auto copy = [&](const Tensor& numbers) {
      return both.there(stream, numbers, DType::f32);
    };
    Results made{stream.make({rows, outputs}),
                 stream.make({rows, outputs}),
                 stream.make({rows, inputs}),
                 copy(dx_before),
                 copy(before),
                 stream.make(before.shape()),
                 copy(before),
                 copy(db_before),
                 stream.make(before.shape()),
                 copy(db_before),
                 stream.make({rows, outputs}, activation_type(in)),
                 stream.make({rows, outputs}, activation_type(in)),
                 stream.make({rows, inputs}, activation_type(in))};
    const Tensor weights = copy(w), added = copy(bias), x_there = copy(x), dy_there = copy(dy);
    const PackedLinear packed(stream, shape, weights.f32());
    const Tensor from = as_operand(stream, x_there, in);
    const Tensor back = as_operand(stream, dy_there, in);
    linear_forward(stream, packed, from, added.f32(), made.y);
    linear_forward(stream, packed, from, nullptr, made.plain);
    linear_backward_input(stream, packed, back, made.dx);
    linear_add_backward_input(stream, packed, back, made.dx_added);
    linear_forward(stream, packed, from, added.f32(), made.rounded_y);
    linear_forward(stream, packed, from, nullptr, made.rounded_plain);
    linear_backward_input(stream, packed, back, made.rounded_dx);
    linear_backward_weight(stream, shape, from, back, made.dw.f32(), rows);
    linear_weight_gradient(stream, shape, from, back, made.fresh.f32(), rows);
    linear_backward_parameters(stream, shape, from, {back, back}, made.dw_with_db.f32(),
                               made.dw_with_db.f32(), made.db_with_dw.f32());
    linear_backward_parameters(stream, shape, from, {back, back}, nullptr, made.fresh_with_db.f32(),
                               made.db_with_fresh.f32());
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, Precision::fp32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, precision);
  CHECK(both.near(stream, found.y, wanted.y, in_fp32));
  CHECK(both.near(stream, found.plain, wanted.plain, in_fp32));
  CHECK(both.near(stream, found.dx, wanted.dx, in_fp32));
  CHECK(both.near(stream, found.dx_added, wanted.dx_added, in_fp32));
  const double rounded = rounded_to(activation_type(precision));
  CHECK(both.near(stream, found.rounded_y, wanted.y, rounded));
  CHECK(both.near(stream, found.rounded_plain, wanted.plain, rounded));
  CHECK(both.near(stream, found.rounded_dx, wanted.dx, rounded));
  CHECK(both.near(stream, found.dw, wanted.dw, in_fp32));
  CHECK(both.near(stream, found.fresh, wanted.fresh, in_fp32));
  CHECK(both.near(stream, found.dw_with_db, wanted.dw_with_db, in_fp32));
  CHECK(both.near(stream, found.db_with_dw, wanted.db_with_dw, in_fp32));
  CHECK(both.near(stream, found.fresh_with_db, wanted.fresh_with_db, in_fp32));
  CHECK(both.near(stream, found.db_with_fresh, wanted.db_with_fresh, in_fp32));
}

// The library has gelu with tanh for rows of multiples of 8 numbers, and its simulation for more
// than one row. Our own kernels do the rest. Compares whole tensors: near -0.75 the slope is 0, so
// a single number may change by more than the tolerance.
TEST_CASE("linear layers with gelu on tensor cores equal those of the cores, rounded") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  const auto form = GENERATE(Gelu::erf, Gelu::tanh);
  const std::int64_t rows = GENERATE(1, 37), width = GENERATE(5, 24), hidden = GENERATE(7, 39, 40);
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  CAPTURE(to_string(precision), form == Gelu::erf, rows, width, hidden,
          layout == WeightLayout::in_out);
  const Tensor up = both.made(precision, {width * hidden}, 1),
               down = both.made(precision, {width * hidden}, 2);
  const Tensor bias = both.made(precision, {hidden}, 3), x = both.made(precision, {rows, width}, 4);
  const Tensor dy = both.made(precision, {rows, width}, 5);

  struct Results {
    LinearGelu forward;
    LinearGradient backward;
  };
  const auto on = [&](Stream& stream, Precision in) {
    const auto there = [&](const Tensor& numbers) {
      return both.there(stream, numbers, DType::f32);
    };
    const Tensor up_there = there(up), down_there = there(down), bias_there = there(bias);
    const PackedLinear first(stream, {width, hidden, layout, in}, up_there.f32());
    const PackedLinear second(stream, {hidden, width, layout, in}, down_there.f32());
    const Tensor from = as_operand(stream, there(x), in), back = as_operand(stream, there(dy), in);
    Results made;
    made.forward = linear_gelu_forward(stream, first, from, bias_there.f32(), form);
    made.backward = linear_gelu_backward(stream, second, back, form, made.forward.pre);
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, Precision::fp32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, precision);
  const DType type = activation_type(precision);
  CHECK(found.forward.pre.dtype() == type);
  CHECK(both.near(stream, found.forward.pre, wanted.forward.pre, rounded_to(type)));
  CHECK(both.near(stream, found.forward.y, wanted.forward.y, rounded_to(type)));
  CHECK(both.near(stream, found.backward.operand, wanted.backward.operand, rounded_to(type)));
  CHECK(found.backward.for_bias.raw() == found.backward.operand.raw());
}

// The sum is 1, and the bias is slightly above half of the spacing there. A bias that is rounded
// first equals half of the spacing, and the total rounds to 1. So the result shows whether the bias
// was rounded.
TEST_CASE("a product with gelu rounds the bias, whichever kernel computes gelu") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::fp16_gpu, Precision::bf16_gpu);
  const auto form = GENERATE(Gelu::erf, Gelu::tanh);
  constexpr std::int64_t hidden = 8;
  CAPTURE(to_string(precision), form == Gelu::erf);
  Stream stream(both.shared, *both.device);
  const float step = is_bf16(precision) ? 0x1p-7f : 0x1p-10f;
  const Tensor w = both.full_of(stream, {hidden}, 1, DType::f32),
               bias = both.full_of(stream, {hidden}, step * 0x1.001p-1f, DType::f32);
  const Tensor x = both.full_of(stream, {2, 1}, 1, activation_type(precision));
  const PackedLinear packed(stream, {1, hidden, WeightLayout::in_out, precision}, w.f32());
  const auto made = linear_gelu_forward(stream, packed, x, bias.f32(), form);
  const Tensor pre = stream.to_host(as_type(stream, made.pre, DType::f32));
  stream.wait();
  for (const float number : pre.numbers<float>()) CHECK(number == 1);
}

// cuDNN computes heads of 8 numbers. Our own kernel computes heads of 6 numbers, and backward
// passes of 1 position, or of 64 positions without a mask.
TEST_CASE("attention on tensor cores equals that of the cores, rounded") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::fp16_gpu, Precision::bf16_gpu);
  const DType type_there = activation_type(precision);
  const auto mask = GENERATE(Mask::full, Mask::causal);
  const std::int64_t length = GENERATE(1, 19, 64), width = GENERATE(6, 8);
  const std::int64_t kv_heads = GENERATE(2, 4);
  CAPTURE(to_string(precision), mask == Mask::causal, length, width, kv_heads);
  const AttentionShape shape{2, length, 4, kv_heads, width, mask};
  const std::int64_t row = (shape.heads + 2 * kv_heads) * width, out_row = shape.heads * width;
  const std::int64_t keys = out_row, values = keys + kv_heads * width;
  const Tensor qkv = both.made(precision, {2, length, row}, 1),
               dout = both.made(precision, {2, length, out_row}, 2);

  struct Results {
    Tensor out, logsumexp, dqkv;
  };
  const auto on = [&](Stream& stream, DType type) {
    const Tensor from = both.there(stream, qkv, type), back = both.there(stream, dout, type);
    Results made{stream.make(dout.shape(), type), stream.make({2, shape.heads, length}),
                 stream.make(qkv.shape(), type)};
    attend(stream, shape, {from}, {from, keys}, {from, values}, {made.out}, made.logsumexp);
    attend_back(stream, shape, {from}, {from, keys}, {from, values}, {made.out}, made.logsumexp,
                {back}, {made.dqkv}, {made.dqkv, keys}, {made.dqkv, values});
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, DType::f32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, type_there);
  CHECK(both.near(stream, found.logsumexp, wanted.logsumexp, in_fp32));
  CHECK(both.near(stream, found.out, wanted.out, rounded_to(type_there)));
  CHECK(both.near(stream, found.dqkv, wanted.dqkv, rounded_to(type_there)));
}

TEST_CASE("convolutions on tensor cores equal those of the cores, rounded") {
  Both both;
  if (!both.device) return;
  const auto precision = GENERATE(Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  const Conv2dShape shape =
      GENERATE(Conv2dShape{2, 3, 8, 7, 5, 3, 1, 1}, Conv2dShape{2, 8, 8, 8, 16, 3, 2, 1},
               Conv2dShape{3, 4, 6, 6, 8, 1, 2, 0}, Conv2dShape{2, 6, 5, 7, 9, 3, 2, 1, 3},
               Conv2dShape{2, 8, 6, 6, 8, 3, 1, 1, 8});
  CAPTURE(to_string(precision), shape.kernel, shape.stride, shape.groups);
  const Tensor x =
      both.made(precision, {shape.batch, shape.in_channels, shape.height, shape.width}, 1);
  const Tensor w = both.made(
      precision, {shape.out_channels, shape.in_channels / shape.groups, shape.kernel, shape.kernel},
      2);
  const Tensor dy = both.made(
      precision, {shape.batch, shape.out_channels, shape.out_height(), shape.out_width()}, 3);
  const Tensor before = both.made(precision, w.shape(), 4);

  struct Results {
    Tensor y, dx, dw;
  };
  const auto on = [&](Stream& stream, Precision in) {
    const DType type = activation_type(in);
    const Tensor from = both.there(stream, x, type), by = both.there(stream, w, type);
    const Tensor back = both.there(stream, dy, type);
    Results made{stream.make(dy.shape(), type), stream.make(x.shape(), type),
                 both.there(stream, before, DType::f32)};
    convolve(stream, shape, in, from, by, made.y);
    convolve_back_to_input(stream, shape, in, by, back, made.dx);
    convolve_back_to_weight(stream, shape, in, from, back, made.dw);
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, Precision::fp32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, precision);
  CHECK(both.near(stream, found.y, wanted.y, rounded_to(activation_type(precision))));
  CHECK(both.near(stream, found.dx, wanted.dx, rounded_to(activation_type(precision))));
  CHECK(both.near(stream, found.dw, wanted.dw, rounded_to(activation_type(precision))));
}

// Infinity lets the loss scale detect the overflow, whichever kernel made the number.
TEST_CASE("an fp16 overflow in a convolution becomes infinite") {
  Both both;
  if (!both.device) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Conv2dShape shape{1, 8, 4, 4, 8, 1, 1, 0};
  Stream stream(both.shared, *both.device);
  const Tensor x = both.full_of(stream, {1, 8, 4, 4}, 200, DType::f16),
               w = both.full_of(stream, {8, 8, 1, 1}, 100, DType::f16);
  const Tensor dy = both.full_of(stream, {1, 8, 4, 4}, -100, DType::f16);
  Tensor y = stream.make(dy.shape(), DType::f16), dx = stream.make(x.shape(), DType::f16);
  Tensor dw = both.full_of(stream, {8, 8, 1, 1}, 1, DType::f32);
  convolve(stream, shape, Precision::fp16_gpu, x, w, y);
  convolve_back_to_input(stream, shape, Precision::fp16_gpu, w, dy, dx);
  convolve_back_to_weight(stream, shape, Precision::fp16_gpu, x, dy, dw);
  CHECK(first_of(stream, y) == infinity);    // 8 * 200 * 100
  CHECK(first_of(stream, dx) == -infinity);  // 8 * 100 * -100
  CHECK(first_of(stream, dw) == -infinity);  // 16 * 200 * -100
}

/// The kernel that computes gelu: the library, or our own after the product.
struct Taker {
  bool is_library;
  Gelu form;
  std::int64_t columns;
};
const auto takers = {Taker{true, Gelu::tanh, 8}, Taker{false, Gelu::tanh, 9},
                     Taker{false, Gelu::erf, 8}};

TEST_CASE("an fp16 overflow in a product with gelu becomes infinite") {
  Both both;
  if (!both.device) return;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Taker taker = GENERATE(values(takers));
  const bool is_library = taker.is_library;
  const auto form = taker.form;
  const auto hidden = taker.columns;
  CAPTURE(is_library, form == Gelu::erf);
  Stream stream(both.shared, *both.device);
  const auto layer = [&](std::int64_t inputs, std::int64_t outputs, float weight) {
    const Tensor w = both.full_of(stream, {hidden}, weight, DType::f32);
    const LinearShape shape{inputs, outputs, WeightLayout::in_out, Precision::fp16_gpu};
    return PackedLinear(stream, shape, w.f32());
  };
  const Tensor numbers = both.full_of(stream, {2, 1}, 300, DType::f16);
  const Tensor zeros = both.full_of(stream, {hidden}, 0, DType::f32);
  const auto large = linear_gelu_forward(stream, layer(1, hidden, 300), numbers, zeros.f32(), form);
  CHECK(first_of(stream, large.pre) == infinity);
  CHECK(first_of(stream, large.y) == infinity);
  const auto low = linear_gelu_forward(stream, layer(1, hidden, -300), numbers, zeros.f32(), form);
  CHECK(first_of(stream, low.pre) == -infinity);
  CHECK(first_of(stream, low.y) == 0);

  const auto back = [&](const Tensor& pre, float weight) {
    const auto made = linear_gelu_backward(stream, layer(hidden, 1, weight), numbers, form, pre);
    return first_of(stream, made.operand);
  };
  const Tensor steep = both.full_of(stream, {2, hidden}, 20, DType::f16);  // The slope is 1.
  CHECK(back(steep, 300) == infinity);
  CHECK(back(steep, -300) == -infinity);
  const auto gradient = linear_gelu_backward(stream, layer(hidden, 1, 300), numbers, form, steep);
  Tensor dw = both.full_of(stream, {1, hidden}, 0, DType::f32);
  Tensor db = both.full_of(stream, {hidden}, 0, DType::f32);
  linear_backward_parameters(stream, {1, hidden, WeightLayout::in_out, Precision::fp16_gpu},
                             numbers, gradient, nullptr, dw.f32(), db.f32());
  CHECK(first_of(stream, dw) == infinity);
  CHECK(first_of(stream, db) == infinity);
  // The library's result for -infinity is unspecified.
  if (!is_library) CHECK(back(low.pre, 1) == 0);
}

}  // namespace
}  // namespace troupe::kernels
