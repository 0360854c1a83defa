#include "kernels/late.h"

#include "numbers.h"

namespace troupe::kernels {
namespace {

TEST_CASE("inverses_of_blocks finds the sum and the maximum of each block", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  std::vector<float> x(65'536 + 3, 2);
  x[1] = 0.25f;
  x[65'536] = 0.5f;
  x[65'538] = 8;
  std::vector<Inverses> blocks(2);
  inverses_of_blocks(stream, x.data(), static_cast<std::int64_t>(x.size()), blocks.data());
  CHECK(blocks[0].sum == 65'535 * 0.5 + 4);
  CHECK(blocks[0].most == 4);
  CHECK(blocks[1].sum == 2 + 0.5 + 0.125);
  CHECK(blocks[1].most == 2);
}

TEST_CASE("inverses_of_blocks gives element i of a block to lane i % 16", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  // Doubles near 2^60 are 256 apart, so 2^60 loses each 100 that is added to it, but not the sum of
  // two. Lane 0 has 2^60, and lane 1 has the others.
  std::vector<double> x(18, 1e300);
  x[0] = 0x1p-60;
  x[1] = x[17] = 0.01;
  Inverses block;
  inverses_of_blocks(stream, x.data(), static_cast<std::int64_t>(x.size()), &block);
  CHECK(block.sum == 0x1p60 + 256);
}

}  // namespace
}  // namespace troupe::kernels
