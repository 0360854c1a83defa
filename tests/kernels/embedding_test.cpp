#include "kernels/embedding.h"

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

TEST_CASE("an embedding copies the rows of its tokens", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats table{0, 1, 10, 11, 20, 21};
  const std::int32_t tokens[] = {2, 0, 2, 1};
  Floats y(8);
  embedding_forward(stream, table.data(), tokens, y.data(), 4, 2);
  CHECK(y == Floats{20, 21, 0, 1, 20, 21, 10, 11});
}

TEST_CASE("an embedding adds the gradients of a token in the order of the rows", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::int32_t tokens[] = {1, 0, 1, 1};
  // In float, 1 + 2^30 equals 2^30, so every other order of the sum gives another result.
  const Floats dy{1, 5, 0x1p30f, -0x1p30f};
  Floats dtable{100, 0, 7};
  embedding_backward_weight(stream, tokens, dy.data(), dtable.data(), 4, 1);
  CHECK(dtable == Floats{105, 0, 7});
  const Floats other{0x1p30f, 5, -0x1p30f, 1};
  embedding_backward_weight(stream, tokens, other.data(), dtable.data(), 4, 1);
  CHECK(dtable == Floats{110, 1, 7});
}

TEST_CASE("an embedding has the same bits with any number of threads and any instruction set",
          "[kernels]") {
  const std::int64_t rows = 300, columns = 131;
  const auto dy = numbers(rows * columns, 1);
  std::vector<std::int32_t> tokens;
  for (std::int32_t r = 0; r < rows; ++r) tokens.push_back(r * 7 % 11);
  CHECK(same_bits([&](Stream& stream) {
    Floats dtable(11 * columns, 0.5f), y(dy.size());
    embedding_backward_weight(stream, tokens.data(), dy.data(), dtable.data(), rows, columns);
    embedding_forward(stream, dtable.data(), tokens.data(), y.data(), rows, columns);
    return y;
  }));
}

}  // namespace
}  // namespace troupe::kernels
