#include "kernels/copy.h"

#include "catch.h"
#include "kernels/combine.h"
#include "kernels/patches.h"

using namespace troupe;
using namespace troupe::kernels;

TEST_CASE("fill sets each number and writes nothing behind the last one", "[kernels]") {
  MemoryPool memory;
  for (const int threads : {1, 3}) {
    Stream stream(memory, threads);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{200'000}}) {
      std::vector<float> y(count + 1, 7);
      fill(stream, 3, y.data(), static_cast<std::int64_t>(count));
      CHECK(std::count(y.begin(), y.end(), 3.0f) == static_cast<std::int64_t>(count));
      CHECK(y.back() == 7);
    }
  }
}

TEST_CASE("copy_rows reads and writes at its strides", "[kernels]") {
  MemoryPool memory;
  Stream stream(memory, 2);
  const std::vector<float> from{1, 2, 3, 4, 5, 6};
  std::vector<float> to(8, 0);
  copy_rows(stream, {from.data() + 1, 3}, {to.data(), 4}, 2, 2);
  CHECK(to == std::vector<float>{2, 3, 0, 0, 5, 6, 0, 0});
  copy_rows(stream, {from.data(), 0}, {to.data() + 2, 4}, 2, 2);
  CHECK(to == std::vector<float>{2, 3, 1, 2, 5, 6, 1, 2});
}

TEST_CASE("combine computes a x + b z, also in place and over many blocks", "[kernels]") {
  MemoryPool memory;
  Stream stream(memory, 2);
  std::vector<float> x(150'000), z(150'000, 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 100);
  combine(stream, 2, x.data(), 0.5f, z.data(), z.data(), 150'000);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (z[i] != 2 * x[i] + 4) FAIL("at " << i << ": " << z[i]);
  CHECK(z.back() == 2 * 99 + 4);
}

TEST_CASE("patches hold channel by channel, row by row, and join_patches restores the image",
          "[kernels]") {
  MemoryPool memory;
  Stream stream(memory, 2);
  const PatchShape shape{.batch = 2, .channels = 1, .height = 2, .width = 4, .size = 2};
  std::vector<float> images(16), patches(16), again(16);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i);
  cut_patches(stream, shape, images.data(), patches.data());
  CHECK(patches == std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15});
  join_patches(stream, shape, patches.data(), again.data());
  CHECK(again == images);

  const PatchShape colored{.batch = 1, .channels = 2, .height = 1, .width = 2, .size = 1};
  cut_patches(stream, colored, images.data(), patches.data());
  CHECK(std::vector<float>(patches.begin(), patches.begin() + 4) == std::vector<float>{0, 2, 1, 3});
}
