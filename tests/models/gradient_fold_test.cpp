#include "models/gradient_fold.h"

#include <cmath>

#include "catch.h"

using namespace troupe;
using namespace troupe::models;

namespace {

/// Numbers whose sum depends on the order in every step of it.
float leaf(int i) { return 1.0f / static_cast<float>(3 * i + 1) + (i % 3 == 0 ? 1e4f : 0); }

float left_fold(int first, int last) {
  float sum = 0;
  for (int i = first; i < last; ++i) sum += leaf(i);
  return sum;
}

/// The tree as it is defined: split at the largest power of two below the size.
float tree(const std::vector<float>& sums, std::size_t first, std::size_t last) {
  if (last - first == 1) return sums[first];
  std::size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return tree(sums, first, first + half) + tree(sums, first + half, last);
}

float folded(Stream& stream, int micro_batches, int groups) {
  const std::vector<Parameter> parameters{{.name = "w", .shape = {1}}};
  GradientFold fold(micro_batches, groups);
  for (int m = 0; m < micro_batches; ++m) {
    CHECK(fold.idle() == (m == 0));
    CHECK(!fold.complete());
    fold.open(stream, parameters)[0].f32()[0] += leaf(m);
    fold.close(stream);
  }
  REQUIRE(fold.complete());
  const float sum = fold.take(stream)[0].f32()[0];
  CHECK(fold.idle());
  return sum;
}

}  // namespace

TEST_CASE("one group is a left fold", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (int m = 1; m <= 20; ++m) CHECK(folded(stream, m, 1) == left_fold(0, m));
}

TEST_CASE("groups differ by at most one micro-batch, the larger first", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  CHECK(folded(stream, 5, 2) == left_fold(0, 3) + left_fold(3, 5));
  CHECK(folded(stream, 8, 3) == (left_fold(0, 3) + left_fold(3, 6)) + left_fold(6, 8));
  CHECK(folded(stream, 7, 4) ==
        (left_fold(0, 2) + left_fold(2, 4)) + (left_fold(4, 6) + left_fold(6, 7)));
}

TEST_CASE("across groups the tree splits at the largest power of two below the size", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (int groups = 1; groups <= 33; ++groups) {
    std::vector<float> sums;
    for (int i = 0; i < groups; ++i) sums.push_back(left_fold(2 * i, 2 * i + 2));
    CHECK(folded(stream, 2 * groups, groups) == tree(sums, 0, sums.size()));
  }
}

TEST_CASE("aligned halves may be added up elsewhere", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto sum_of = [&](int first, int last) {
    TreeFold fold;
    for (int i = first; i < last; ++i) {
      Tensor t = stream.make({1});
      t.f32()[0] = leaf(i);
      fold.push(stream, {t});
    }
    return fold.finish(stream);
  };
  TreeFold across;
  for (int replica = 0; replica < 3; ++replica)
    across.push(stream, sum_of(4 * replica, 4 * replica + 4));
  CHECK(across.finish(stream)[0].f32()[0] == sum_of(0, 12)[0].f32()[0]);
}

TEST_CASE("at most log2(groups) + 1 sums live at once", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (int leaves = 1; leaves <= 64; ++leaves) {
    TreeFold fold;
    int most = 0;
    for (int i = 0; i < leaves; ++i) {
      const Tensor t = stream.make({1});
      fold.push(stream, {t});
      most = std::max(most, fold.sums());
    }
    CHECK(most <= static_cast<int>(std::log2(leaves)) + 1);
    (void)fold.finish(stream);
    CHECK(fold.sums() == 0);
  }
}
