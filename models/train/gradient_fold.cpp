#include "models/train/gradient_fold.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "models/arithmetic.h"

namespace troupe::models {

int Share::begin_of(int group) const {
  const int size = micro_batches / groups, larger = micro_batches % groups;
  return group * size + std::min(group, larger);
}

void TreeFold::join_last_two(Stream& stream) {
  PartialSum right = std::move(nodes_.back());
  nodes_.pop_back();
  PartialSum& left = nodes_.back();
  assert(left.slots.size() == right.slots.size());
  for (std::size_t i = 0; i < left.slots.size(); ++i)
    add(stream, left.slots[i], std::move(right.slots[i]));
  left.groups += right.groups;
}

namespace {

bool are_siblings(const PartialSum& left, int groups_of_right) {
  return left.groups == groups_of_right && left.first_group % (2 * left.groups) == 0;
}

}  // namespace

void TreeFold::push(Stream& stream, PartialSum node) {
  assert(nodes_.empty() || nodes_.back().first_group + nodes_.back().groups == node.first_group);
  nodes_.push_back(std::move(node));
  while (nodes_.size() > 1 && are_siblings(nodes_[nodes_.size() - 2], nodes_.back().groups))
    join_last_two(stream);
}

int TreeFold::joins() const {
  int count = 0, groups = 1;
  for (auto left = nodes_.rbegin(); left != nodes_.rend() && are_siblings(*left, groups); ++left) {
    groups *= 2;
    ++count;
  }
  return count;
}

std::vector<PartialSum> TreeFold::take() { return std::exchange(nodes_, {}); }

std::vector<Tensor> TreeFold::finish(Stream& stream) {
  assert(!nodes_.empty() && nodes_[0].first_group == 0);
  // The remaining nodes are the right-most branches of the tree: one for each power of two in the
  // number of leaves, largest first.
  while (nodes_.size() > 1) join_last_two(stream);
  auto sum = std::move(nodes_.back().slots);
  nodes_.clear();
  return sum;
}

GradientFold::GradientFold(const Share& share) : share_(share), group_(share.first_group) {
  assert(0 <= share.first_group && share.first_group < share.last_group);
  assert(share.last_group <= share.groups && share.groups <= share.micro_batches);
}

std::span<Tensor> GradientFold::open(std::size_t parameters) {
  assert(done_ < share_.count());
  current_.resize(parameters);
  return current_;
}

std::span<Tensor> GradientFold::open_apart(Stream& stream, const std::vector<Parameter>& parameters,
                                           int sets) {
  assert(done_ < share_.count() && apart_.empty());
  const Stream::Lasting lasting(stream);  // They become the sums or are added to them.
  for (const auto& parameter : parameters)
    apart_.push_back(parameter.frozen ? Tensor()
                                      : filled(stream, parameter.shape, parameter.type, 0));
  apart_.resize(apart_.size() * static_cast<std::size_t>(sets));
  return apart_;
}

Tensor GradientFold::so_far(Stream& stream, std::size_t slot) const {
  Tensor sum = current_.empty() ? Tensor() : current_[slot];
  for (const auto& node : tree_.nodes())
    sum = sum.empty() ? node.slots[slot] : combined(stream, 1, sum, 1, node.slots[slot]);
  return sum;
}

bool GradientFold::next_ends_group() const {
  return share_.first_micro_batch() + done_ + 1 >= share_.begin_of(group_ + 1);
}

std::uint64_t GradientFold::next_kind() const {
  const std::uint64_t opens = current_.empty() ? 1 : 0;
  if (!next_ends_group()) return opens;
  return opens + 2 + 4 * static_cast<std::uint64_t>(tree_.joins());
}

void GradientFold::close(Stream& stream) {
  if (current_.empty())
    current_.swap(apart_);
  else
    for (std::size_t i = 0; i < apart_.size(); ++i) add(stream, current_[i], std::move(apart_[i]));
  apart_.clear();
  const bool ends_group = next_ends_group();
  ++done_;
  if (!ends_group) return;
  tree_.push(stream, {.first_group = group_, .groups = 1, .slots = std::exchange(current_, {})});
  ++group_;
}

std::vector<PartialSum> GradientFold::take() {
  assert(complete());
  done_ = 0;
  group_ = share_.first_group;
  return tree_.take();
}

}  // namespace troupe::models
