#include "kernels/conv2d.h"

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

const Conv2dShape shapes[] = {
    {.batch = 1, .in_channels = 1, .height = 1, .width = 1, .out_channels = 1},
    {.batch = 2,
     .in_channels = 3,
     .height = 7,
     .width = 5,
     .out_channels = 4,
     .kernel = 3,
     .padding = 1},
    {.batch = 3,
     .in_channels = 2,
     .height = 8,
     .width = 9,
     .out_channels = 5,
     .kernel = 3,
     .stride = 2,
     .padding = 1},
    {.batch = 1,
     .in_channels = 5,
     .height = 6,
     .width = 6,
     .out_channels = 3,
     .kernel = 1,
     .stride = 2},
    {.batch = 1,
     .in_channels = 2,
     .height = 11,
     .width = 13,
     .out_channels = 2,
     .kernel = 5,
     .stride = 3,
     .padding = 2},
    {.batch = 1,
     .in_channels = 1,
     .height = 3,
     .width = 4,
     .out_channels = 2,
     .kernel = 2,
     .padding = 3},
    {.batch = 1,
     .in_channels = 13,
     .height = 9,
     .width = 35,
     .out_channels = 7,
     .kernel = 3,
     .padding = 1},
    {.batch = 3,
     .in_channels = 6,
     .height = 5,
     .width = 8,
     .out_channels = 9,
     .kernel = 3,
     .padding = 1,
     .groups = 3},
    {.batch = 2,
     .in_channels = 5,
     .height = 9,
     .width = 7,
     .out_channels = 5,
     .kernel = 3,
     .stride = 2,
     .padding = 1,
     .groups = 5},
    {.batch = 2,
     .in_channels = 4,
     .height = 4,
     .width = 4,
     .out_channels = 12,
     .kernel = 1,
     .groups = 4},
};

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t in_count(const Conv2dShape& s) { return s.batch * s.in_channels * s.height * s.width; }
std::int64_t out_count(const Conv2dShape& s) {
  return s.batch * s.out_channels * s.out_height() * s.out_width();
}
std::int64_t weight_count(const Conv2dShape& s) {
  return s.out_channels * (s.in_channels / s.groups) * s.kernel * s.kernel;
}

/// Calls body(x, w, y) with the indices of each product in the definition.
template <class Body>
void each_product(const Conv2dShape& s, Body body) {
  const std::int64_t in_group = s.in_channels / s.groups, out_group = s.out_channels / s.groups;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t o = 0; o < s.out_channels; ++o)
      for (std::int64_t y = 0; y < s.out_height(); ++y)
        for (std::int64_t x = 0; x < s.out_width(); ++x)
          for (std::int64_t c = 0; c < in_group; ++c)
            for (std::int64_t i = 0; i < s.kernel; ++i)
              for (std::int64_t j = 0; j < s.kernel; ++j) {
                const std::int64_t row = y * s.stride + i - s.padding;
                const std::int64_t column = x * s.stride + j - s.padding;
                if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
                const std::int64_t channel = o / out_group * in_group + c;
                body(size(((b * s.in_channels + channel) * s.height + row) * s.width + column),
                     size(((o * in_group + c) * s.kernel + i) * s.kernel + j),
                     size(((b * s.out_channels + o) * s.out_height() + y) * s.out_width() + x));
              }
}

struct Convolution {
  explicit Convolution(const Conv2dShape& s)
      : shape(s),
        x(numbers(in_count(s), 1)),
        w(numbers(weight_count(s), 2)),
        dy(numbers(out_count(s), 3)),
        dw(numbers(weight_count(s), 4)) {}

  Floats forward(Stream& stream) const {
    Floats y(dy.size(), 9);
    conv2d_forward(stream, shape, x.data(), w.data(), y.data());
    return y;
  }
  Floats backward_input(Stream& stream) const {
    Floats dx(x.size(), 9);
    conv2d_backward_input(stream, shape, w.data(), dy.data(), dx.data());
    return dx;
  }
  Floats backward_weight(Stream& stream) const {
    Floats sum = dw;
    conv2d_backward_weight(stream, shape, x.data(), dy.data(), sum.data());
    return sum;
  }

  Conv2dShape shape;
  Floats x, w, dy, dw;
};

}  // namespace

TEST_CASE("a convolution and its gradients agree with their definition", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto& shape : shapes) {
    INFO(shape.height << " x " << shape.width << ", kernel " << shape.kernel << ", stride "
                      << shape.stride << ", padding " << shape.padding);
    const Convolution c(shape);
    Doubles y(c.dy.size()), dx(c.x.size()), dw = doubles(c.dw);
    each_product(shape, [&](std::size_t in, std::size_t weight, std::size_t out) {
      y[out] += double{c.x[in]} * c.w[weight];
      dx[in] += double{c.dy[out]} * c.w[weight];
      dw[weight] += double{c.x[in]} * c.dy[out];
    });
    CHECK(close(c.forward(stream), y, 32));
    CHECK(close(c.backward_input(stream), dx, 32));
    CHECK(close(c.backward_weight(stream), dw, 32));
  }
}

TEST_CASE("a convolution in several pieces agrees with its definition", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Conv2dShape shape{.batch = 1,
                          .in_channels = 9,
                          .height = 40,
                          .width = 67,
                          .out_channels = 33,
                          .kernel = 7,
                          .padding = 3};
  const Convolution c(shape);
  Doubles y(c.dy.size()), dx(c.x.size()), dw = doubles(c.dw);
  each_product(shape, [&](std::size_t in, std::size_t weight, std::size_t out) {
    y[out] += double{c.x[in]} * c.w[weight];
    dx[in] += double{c.dy[out]} * c.w[weight];
    dw[weight] += double{c.x[in]} * c.dy[out];
  });
  CHECK(close(c.forward(stream), y, 441));
  CHECK(close(c.backward_input(stream), dx, 1617));
  CHECK(close(c.backward_weight(stream), dw, 2680));
}

TEST_CASE("the weight gradient of a convolution adds the images of a batch in order", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Convolution both({.batch = 2,
                          .in_channels = 3,
                          .height = 5,
                          .width = 5,
                          .out_channels = 4,
                          .kernel = 3,
                          .padding = 1});
  Conv2dShape one = both.shape;
  one.batch = 1;
  Floats dw = both.dw;
  conv2d_backward_weight(stream, one, both.x.data(), both.dy.data(), dw.data());
  conv2d_backward_weight(stream, one, both.x.data() + 75, both.dy.data() + 100, dw.data());
  CHECK(dw == both.backward_weight(stream));
}

TEST_CASE("a convolution has the same bits with any number of threads and any instruction set",
          "[kernels]") {
  const Convolution c({.batch = 5,
                       .in_channels = 17,
                       .height = 12,
                       .width = 11,
                       .out_channels = 19,
                       .kernel = 3,
                       .stride = 2,
                       .padding = 1});
  CHECK(same_bits([&](Stream& stream) { return c.forward(stream); }));
  CHECK(same_bits([&](Stream& stream) { return c.backward_input(stream); }));
  CHECK(same_bits([&](Stream& stream) { return c.backward_weight(stream); }));
}

TEST_CASE("a convolution with groups has the bits of one convolution for each group", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  const Convolution all({.batch = 1,
                         .in_channels = 6,
                         .height = 9,
                         .width = 11,
                         .out_channels = 8,
                         .kernel = 3,
                         .stride = 2,
                         .padding = 1,
                         .groups = 2});
  Convolution one(all.shape.of_a_group());
  Floats y, dx, dw;
  const auto half_of = [](const Floats& x, std::ptrdiff_t g) {
    const auto half = static_cast<std::ptrdiff_t>(x.size() / 2);
    return Floats(x.begin() + g * half, x.begin() + (g + 1) * half);
  };
  const auto append = [](Floats& to, const Floats& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const std::ptrdiff_t g : {0, 1}) {
    one.x = half_of(all.x, g), one.w = half_of(all.w, g);
    one.dy = half_of(all.dy, g), one.dw = half_of(all.dw, g);
    append(y, one.forward(stream));
    append(dx, one.backward_input(stream));
    append(dw, one.backward_weight(stream));
  }
  CHECK(all.forward(stream) == y);
  CHECK(all.backward_input(stream) == dx);
  CHECK(all.backward_weight(stream) == dw);
}

TEST_CASE("a convolution of each channel has the same bits with any threads and instruction set",
          "[kernels]") {
  // The panels of so many groups are packed in several turns.
  const Convolution c({.batch = 3,
                       .in_channels = 70,
                       .height = 24,
                       .width = 23,
                       .out_channels = 70,
                       .kernel = 3,
                       .padding = 1,
                       .groups = 70});
  CHECK(same_bits([&](Stream& stream) { return c.forward(stream); }));
  CHECK(same_bits([&](Stream& stream) { return c.backward_input(stream); }));
  CHECK(same_bits([&](Stream& stream) { return c.backward_weight(stream); }));
}

}  // namespace troupe::kernels
