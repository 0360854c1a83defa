#include "kernels/pool.h"

#include <cmath>
#include <limits>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

using Bytes = std::vector<std::uint8_t>;

struct Pooled {
  Floats y, dx;
  Bytes places;
};

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

Pooled greatest(Stream& stream, const PoolShape& shape, const Floats& x, const Floats& dy) {
  Pooled made{Floats(size(shape.outputs())), Floats(x.size(), 7), Bytes(size(shape.outputs()))};
  max_pool_forward(stream, shape, x.data(), made.y.data(), made.places.data());
  max_pool_backward(stream, shape, dy.data(), made.places.data(), made.dx.data());
  return made;
}

Pooled means(Stream& stream, const PoolShape& shape, const Floats& x, const Floats& dy) {
  Pooled made{Floats(size(shape.outputs())), Floats(x.size(), 7), {}};
  window_mean_forward(stream, shape, x.data(), made.y.data());
  window_mean_backward(stream, shape, dy.data(), made.dx.data());
  return made;
}

/// Calls visit(output, pixel, place) for each pixel of each window, in order.
template <class Visit>
void each_pixel(const PoolShape& s, Visit visit) {
  std::int64_t output = 0;
  for (std::int64_t image = 0; image < s.images; ++image)
    for (std::int64_t oy = 0; oy < s.out_height(); ++oy)
      for (std::int64_t ox = 0; ox < s.out_width(); ++ox, ++output)
        for (std::int64_t place = 0; place < s.kernel * s.kernel; ++place) {
          const std::int64_t y = oy * s.stride - s.padding + place / s.kernel;
          const std::int64_t x = ox * s.stride - s.padding + place % s.kernel;
          if (y >= 0 && y < s.height && x >= 0 && x < s.width)
            visit(size(output), size((image * s.height + y) * s.width + x), place);
        }
}

const PoolShape shapes[] = {
    {.images = 2, .height = 1, .width = 1, .kernel = 1, .stride = 1},
    {.images = 3, .height = 6, .width = 8, .kernel = 2, .stride = 2},
    {.images = 2, .height = 7, .width = 9, .kernel = 3, .stride = 2, .padding = 1},
    {.images = 1, .height = 5, .width = 4, .kernel = 3, .stride = 1, .padding = 1},
    {.images = 2, .height = 20, .width = 17, .kernel = 16, .stride = 1, .padding = 8},
    {.images = 2, .height = 11, .width = 11, .kernel = 2, .stride = 5},
};

}  // namespace

TEST_CASE("pools of windows agree with their formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto& shape : shapes) {
    INFO("kernel " << shape.kernel << ", stride " << shape.stride);
    // Whole numbers, so that windows have ties, and sums in doubles are exact.
    Floats x = numbers_up_to(4, shape.images * shape.height * shape.width, 1);
    for (float& number : x) number = std::round(number);
    const Floats dy = numbers(shape.outputs(), 2);
    Floats most(size(shape.outputs()), -std::numeric_limits<float>::infinity());
    Bytes places(most.size());
    Doubles sums(most.size()), back(x.size()), spread(x.size());
    const double share = 1 / static_cast<double>(shape.kernel * shape.kernel);
    each_pixel(shape, [&](std::size_t output, std::size_t pixel, std::int64_t place) {
      sums[output] += share * static_cast<double>(x[pixel]);
      spread[pixel] += share * static_cast<double>(dy[output]);
      if (!(x[pixel] > most[output])) return;
      most[output] = x[pixel];
      places[output] = static_cast<std::uint8_t>(place);
    });
    each_pixel(shape, [&](std::size_t output, std::size_t pixel, std::int64_t place) {
      if (place == places[output]) back[pixel] += static_cast<double>(dy[output]);
    });
    const Pooled greatest_ones = greatest(stream, shape, x, dy);
    CHECK(greatest_ones.y == most);
    CHECK(greatest_ones.places == places);
    CHECK(close(greatest_ones.dx, back, 4));
    const Pooled means_of_them = means(stream, shape, x, dy);
    CHECK(close(means_of_them.y, sums, 4));
    CHECK(close(means_of_them.dx, spread, 4));
  }
}

TEST_CASE("of equal numbers the first in row order gets the gradient, and a NaN is the greatest",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const PoolShape shape{.images = 1, .height = 2, .width = 4, .kernel = 2, .stride = 2};
  const Pooled ties = greatest(stream, shape, {1, 5, 2, 2, 5, 5, 2, 2}, {3, 4});
  CHECK(ties.y == Floats{5, 2});
  CHECK(ties.places == Bytes{1, 0});
  CHECK(ties.dx == Floats{0, 3, 4, 0, 0, 0, 0, 0});
  const Pooled broken = greatest(stream, shape, {1, 5, nan, 9, nan, nan, 8, 7}, {3, 4});
  CHECK(std::isnan(broken.y[0]));
  CHECK(broken.places == Bytes{2, 0});
  CHECK(broken.dx == Floats{0, 0, 4, 0, 3, 0, 0, 0});
}

TEST_CASE("pools of windows have the same bits with any number of threads and instruction set",
          "[kernels]") {
  const PoolShape shape{
      .images = 7, .height = 33, .width = 20, .kernel = 3, .stride = 2, .padding = 1};
  const Floats x = numbers(shape.images * shape.height * shape.width, 1);
  const Floats dy = numbers(shape.outputs(), 2);
  for (const auto& pooled : {greatest, means})
    CHECK(same_bits([&](Stream& stream) {
      Pooled made = pooled(stream, shape, x, dy);
      made.y.insert(made.y.end(), made.dx.begin(), made.dx.end());
      return made.y;
    }));
}

TEST_CASE("an image is enlarged by a whole factor, and its gradient sums each window",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const std::int64_t factor : {1, 2, 3}) {
    const PoolShape shape{
        .images = 3, .height = 4 * factor, .width = 5 * factor, .kernel = factor, .stride = factor};
    const Floats x = numbers(shape.outputs(), 1);
    const Floats dy = numbers(shape.images * shape.height * shape.width, 2);
    Floats y(dy.size()), dx(x.size(), 7), sums(x.size());
    upsample_forward(stream, shape, x.data(), y.data());
    upsample_backward(stream, shape, dy.data(), dx.data());
    each_pixel(shape, [&](std::size_t input, std::size_t pixel, std::int64_t) {
      CHECK(y[pixel] == x[input]);
      sums[input] += dy[pixel];
    });
    CHECK(dx == sums);
  }
}

}  // namespace troupe::kernels
