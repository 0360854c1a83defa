#include "models/gradient_fold.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "kernels/copy.h"
#include "kernels/steps.h"

namespace troupe::models {

void TreeFold::join_last_two(Stream& stream) {
  Node right = std::move(nodes_.back());
  nodes_.pop_back();
  Node& left = nodes_.back();
  assert(left.sum.size() == right.sum.size());
  for (std::size_t i = 0; i < left.sum.size(); ++i)
    kernels::accumulate(stream, left.sum[i].f32(), right.sum[i].f32(), left.sum[i].count());
  left.leaves += right.leaves;
}

void TreeFold::push(Stream& stream, std::vector<Tensor> leaf) {
  nodes_.push_back({1, std::move(leaf)});
  while (nodes_.size() > 1 && nodes_[nodes_.size() - 2].leaves == nodes_.back().leaves)
    join_last_two(stream);
}

std::vector<Tensor> TreeFold::finish(Stream& stream) {
  assert(!nodes_.empty());
  // What is left has the sizes of the powers of two in the number of leaves, the largest first: the
  // right-most branches of the tree.
  while (nodes_.size() > 1) join_last_two(stream);
  auto sum = std::move(nodes_.back().sum);
  nodes_.clear();
  return sum;
}

GradientFold::GradientFold(int micro_batches, int groups)
    : micro_batches_(micro_batches), groups_(groups) {
  assert(groups >= 1 && groups <= micro_batches);
}

int GradientFold::end_of_group() const {
  const int size = micro_batches_ / groups_, larger = micro_batches_ % groups_;
  return (group_ + 1) * size + std::min(group_ + 1, larger);
}

std::span<Tensor> GradientFold::open(Stream& stream, const std::vector<Parameter>& parameters) {
  assert(done_ < micro_batches_);
  if (current_.empty()) {
    for (const auto& parameter : parameters) {
      auto& gradient = current_.emplace_back(stream.make(parameter.shape));
      kernels::fill(stream, 0, gradient.f32(), gradient.count());
    }
  }
  return current_;
}

void GradientFold::close(Stream& stream) {
  if (++done_ < end_of_group()) return;
  tree_.push(stream, std::exchange(current_, {}));
  ++group_;
}

std::vector<Tensor> GradientFold::take(Stream& stream) {
  assert(complete());
  done_ = 0;
  group_ = 0;
  return tree_.finish(stream);
}

}  // namespace troupe::models
