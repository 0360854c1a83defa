// What a device computes in bf16, by libraries and in their order: not to the bit, but as close to
// the numbers themselves as rounding allows.

#include <cmath>

#include "kernels/attention.h"
#include "kernels/conv2d.h"
#include "kernels/linear.h"
#include "kernels/rounding.h"
#include "same.h"

namespace troupe::kernels {
namespace {

/// Sums of so few terms are exact but for their own rounding.
constexpr double in_fp32 = 1e-5;
/// Rounded to 8 bits on the way, several times.
constexpr double in_bf16 = 2e-2;

/// A device's stream, and the cores to compare it with.
struct Both {
  std::unique_ptr<Device> device = open_device_for_bf16();
  MemoryPool host, shared{device ? device_memory() : host_memory()};
  Stream cores{host};

  /// Numbers that bf16 has.
  Tensor made(const Shape& shape, std::uint64_t seed) {
    const auto all = numbers(shape.count(), seed);
    return as_type(cores, as_type(cores, tensor(cores, all, shape), DType::bf16), DType::f32);
  }
  Tensor there(Stream& stream, const Tensor& numbers, DType type) {
    Tensor copy = stream.make(numbers.shape());
    stream.copy(numbers, copy);
    return as_type(stream, copy, type);
  }
  /// `difference` as a share of the largest number.
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

TEST_CASE("numbers are rounded and widened as the cores do it") {
  CHECK(same_on_device([](Stream& stream) {
    std::vector<float> all = numbers(1000, 1);
    for (const float edge : {0.0f, -0.0f, 1e-40f, 3.4e38f, INFINITY, -INFINITY, NAN})
      all.push_back(edge);
    const Tensor x = tensor(stream, all, {static_cast<std::int64_t>(all.size())});
    return std::vector{as_type(stream, as_type(stream, x, DType::bf16), DType::f32)};
  }));
}

TEST_CASE("linear layers in bf16 are products of rounded numbers") {
  Both both;
  if (!both.device) return;
  const std::int64_t rows = GENERATE(1, 5, 300), inputs = GENERATE(1, 17, 40);
  const std::int64_t outputs = GENERATE(1, 24, 33);
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  CAPTURE(rows, inputs, outputs, layout == WeightLayout::in_out);
  const Tensor w = both.made({inputs * outputs}, 1), bias = both.made({outputs}, 2);
  const Tensor x = both.made({rows, inputs}, 3), dy = both.made({rows, outputs}, 4);
  const Tensor before = both.made({inputs * outputs}, 5), db_before = both.made({outputs}, 6);

  struct Results {
    Tensor y, plain, dx, dw, fresh, db;
  };
  const auto on = [&](Stream& stream, Precision precision) {
    const LinearShape shape{inputs, outputs, layout, precision};
    const auto copy = [&](const Tensor& numbers) {
      return both.there(stream, numbers, DType::f32);
    };
    Results made{stream.make({rows, outputs}), stream.make({rows, outputs}),
                 stream.make({rows, inputs}),  copy(before),
                 stream.make(before.shape()),  copy(db_before)};
    const Tensor weights = copy(w), added = copy(bias), x_there = copy(x), dy_there = copy(dy);
    const PackedLinear packed(stream, shape, weights.f32());
    const Tensor from = as_operand(stream, x_there, precision);
    const Tensor back = as_operand(stream, dy_there, precision);
    linear_forward(stream, packed, from, added.f32(), made.y.f32(), rows);
    linear_forward(stream, packed, from, nullptr, made.plain.f32(), rows);
    linear_backward_input(stream, packed, back, made.dx.f32(), rows);
    linear_backward_weight(stream, shape, from, back, made.dw.f32(), rows);
    linear_weight_gradient(stream, shape, from, back, made.fresh.f32(), rows);
    bias_backward(stream, back, made.db.f32());
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, Precision::fp32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, Precision::bf16_gpu);
  CHECK(both.near(stream, found.y, wanted.y, in_fp32));
  CHECK(both.near(stream, found.plain, wanted.plain, in_fp32));
  CHECK(both.near(stream, found.dx, wanted.dx, in_fp32));
  CHECK(both.near(stream, found.dw, wanted.dw, in_fp32));
  CHECK(both.near(stream, found.fresh, wanted.fresh, in_fp32));
  CHECK(both.near(stream, found.db, wanted.db, in_fp32));
}

// Heads of 8 numbers are cuDNN's, those of 6 our own kernel's.
TEST_CASE("attention in bf16 is that of the cores, rounded") {
  Both both;
  if (!both.device) return;
  const auto mask = GENERATE(Mask::full, Mask::causal);
  const std::int64_t width = GENERATE(6, 8), kv_heads = GENERATE(2, 4);
  CAPTURE(mask == Mask::causal, width, kv_heads);
  const AttentionShape shape{2, 19, 4, kv_heads, width, mask};
  const std::int64_t row = (shape.heads + 2 * kv_heads) * width, out_row = shape.heads * width;
  const std::int64_t keys = out_row, values = keys + kv_heads * width;
  const Tensor qkv = both.made({2, 19, row}, 1), dout = both.made({2, 19, out_row}, 2);

  struct Results {
    Tensor out, logsumexp, dqkv;
  };
  const auto on = [&](Stream& stream, DType type) {
    const Tensor from = both.there(stream, qkv, type), back = both.there(stream, dout, type);
    Results made{stream.make(dout.shape(), type), stream.make({2, shape.heads, 19}),
                 stream.make(qkv.shape(), type)};
    attend(stream, shape, {from}, {from, keys}, {from, values}, {made.out}, made.logsumexp);
    attend_back(stream, shape, {from}, {from, keys}, {from, values}, {made.out}, made.logsumexp,
                {back}, {made.dqkv}, {made.dqkv, keys}, {made.dqkv, values});
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, DType::f32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, DType::bf16);
  CHECK(both.near(stream, found.logsumexp, wanted.logsumexp, in_fp32));
  CHECK(both.near(stream, found.out, wanted.out, in_bf16));
  CHECK(both.near(stream, found.dqkv, wanted.dqkv, in_bf16));
}

TEST_CASE("convolutions in bf16 are those of the cores, rounded") {
  Both both;
  if (!both.device) return;
  const Conv2dShape shape =
      GENERATE(Conv2dShape{2, 3, 8, 7, 5, 3, 1, 1}, Conv2dShape{2, 8, 8, 8, 16, 3, 2, 1},
               Conv2dShape{3, 4, 6, 6, 8, 1, 2, 0});
  CAPTURE(shape.kernel, shape.stride);
  const Tensor x = both.made({shape.batch, shape.in_channels, shape.height, shape.width}, 1);
  const Tensor w =
      both.made({shape.out_channels, shape.in_channels, shape.kernel, shape.kernel}, 2);
  const Tensor dy =
      both.made({shape.batch, shape.out_channels, shape.out_height(), shape.out_width()}, 3);
  const Tensor before = both.made(w.shape(), 4);

  struct Results {
    Tensor y, dx, dw;
  };
  const auto on = [&](Stream& stream, DType type) {
    const Tensor from = both.there(stream, x, type), by = both.there(stream, w, type);
    const Tensor back = both.there(stream, dy, type);
    Results made{stream.make(dy.shape(), type), stream.make(x.shape(), type),
                 both.there(stream, before, DType::f32)};
    convolve(stream, shape, from, by, made.y);
    convolve_back_to_input(stream, shape, by, back, made.dx);
    convolve_back_to_weight(stream, shape, from, back, made.dw);
    stream.wait();
    return made;
  };
  const Results wanted = on(both.cores, DType::f32);
  Stream stream(both.shared, *both.device);
  const Results found = on(stream, DType::bf16);
  CHECK(both.near(stream, found.y, wanted.y, in_bf16));
  CHECK(both.near(stream, found.dx, wanted.dx, in_bf16));
  CHECK(both.near(stream, found.dw, wanted.dw, in_bf16));
}

}  // namespace
}  // namespace troupe::kernels
