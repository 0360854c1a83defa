#include "models/train/gradient_fold.h"

#include <cmath>

#include "catch.h"
#include "models/arithmetic.h"

using namespace troupe;
using namespace troupe::models;

namespace {

/// Returns numbers whose sum depends on the order at every step.
float leaf(int i) { return 1.0f / static_cast<float>(3 * i + 1) + (i % 3 == 0 ? 1e4f : 0); }

float left_fold(int first, int last) {
  float sum = 0;
  for (int i = first; i < last; ++i) sum += leaf(i);
  return sum;
}

/// Computes the tree by its definition: split at the largest power of two below the size.
float tree(const std::vector<float>& sums, std::size_t first, std::size_t last) {
  if (last - first == 1) return sums[first];
  std::size_t half = 1;
  while (2 * half < last - first) half *= 2;
  return tree(sums, first, first + half) + tree(sums, first + half, last);
}

/// Adds the leaf of the next micro-batch to a parameter of one element.
void add_leaf(Stream& stream, GradientFold& fold, int i) {
  Tensor& sum = fold.open(1)[0];
  if (sum.empty()) sum = filled(stream, {1}, DType::f32, 0);
  sum.f32()[0] += leaf(i);
  fold.close(stream);
}

float folded(Stream& stream, int micro_batches, int groups) {
  GradientFold fold(Share::whole(micro_batches, groups));
  for (int m = 0; m < micro_batches; ++m) {
    CHECK(fold.idle() == (m == 0));
    CHECK(!fold.complete());
    add_leaf(stream, fold, m);
  }
  REQUIRE(fold.complete());
  TreeFold tree;
  for (auto& sum : fold.take()) tree.push(stream, std::move(sum));
  CHECK(fold.idle());
  return tree.finish(stream)[0].f32()[0];
}

}  // namespace

TEST_CASE("one group adds its micro-batches from left to right", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (int m = 1; m <= 20; ++m) CHECK(folded(stream, m, 1) == left_fold(0, m));
}

TEST_CASE("groups differ by at most one micro-batch and the larger groups come first", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  CHECK(folded(stream, 5, 2) == left_fold(0, 3) + left_fold(3, 5));
  CHECK(folded(stream, 8, 3) == (left_fold(0, 3) + left_fold(3, 6)) + left_fold(6, 8));
  CHECK(folded(stream, 7, 4) ==
        (left_fold(0, 2) + left_fold(2, 4)) + (left_fold(4, 6) + left_fold(6, 7)));
}

TEST_CASE("the tree over groups splits at the largest power of two below its size", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (int groups = 1; groups <= 33; ++groups) {
    std::vector<float> sums;
    for (int i = 0; i < groups; ++i) sums.push_back(left_fold(2 * i, 2 * i + 2));
    CHECK(folded(stream, 2 * groups, groups) == tree(sums, 0, sums.size()));
  }
}

TEST_CASE("shares that are added separately give the bits of the whole gradient", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (const int micro_batches : {12, 16, 19})
    for (const int groups : {1, 5, 7, 8, 12})
      for (int cut = 0; cut <= groups; ++cut) {
        TreeFold tree;
        for (const auto& [first, last] : {std::pair{0, cut}, std::pair{cut, groups}}) {
          if (first == last) continue;
          const Share share{micro_batches, groups, first, last};
          GradientFold fold(share);
          for (int m = 0; m < share.count(); ++m)
            add_leaf(stream, fold, share.first_micro_batch() + m);
          for (auto& sum : fold.take()) tree.push(stream, std::move(sum));
        }
        CHECK(tree.finish(stream)[0].f32()[0] == folded(stream, micro_batches, groups));
      }
}

TEST_CASE("a tree over n groups holds at most log2 n + 1 sums", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  for (int leaves = 1; leaves <= 64; ++leaves) {
    TreeFold fold;
    int most = 0;
    for (int i = 0; i < leaves; ++i) {
      fold.push(stream, {.first_group = i, .groups = 1, .slots = {stream.make({1})}});
      most = std::max(most, fold.sums());
    }
    CHECK(most <= static_cast<int>(std::log2(leaves)) + 1);
    (void)fold.finish(stream);
    CHECK(fold.sums() == 0);
  }
}

TEST_CASE("next_kind tells which sums a micro-batch makes, ends and merges", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  // Kinds: 1 makes a sum, 2 ends a group, 4 for each merge of two sums.
  for (const auto& [groups, wanted] : {std::pair<int, std::vector<std::uint64_t>>{1, {1, 0, 0, 2}},
                                       {2, {1, 2, 1, 2 + 4}},
                                       {4, {1 + 2, 1 + 2 + 4, 1 + 2, 1 + 2 + 8}}}) {
    GradientFold fold(Share::whole(4, groups));
    std::vector<std::uint64_t> kinds;
    for (int m = 0; m < 4; ++m) {
      kinds.push_back(fold.next_kind());
      add_leaf(stream, fold, m);
    }
    CHECK(kinds == wanted);
    (void)fold.take();
  }
}
