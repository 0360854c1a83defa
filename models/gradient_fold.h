#pragma once

#include <span>
#include <vector>

#include "core/stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// Adds up leaves that come one after another by a binary tree whose shape depends on their number
/// alone: each node splits at the largest power of two below its size. Keeps at most log2(leaves) +
/// 1 sums.
class TreeFold {
 public:
  /// A leaf's tensors are used up.
  void push(Stream& stream, std::vector<Tensor> leaf);
  /// The sum of all leaves; then the fold is empty again.
  std::vector<Tensor> finish(Stream& stream);

  int sums() const { return static_cast<int>(nodes_.size()); }

 private:
  struct Node {
    int leaves = 0;
    std::vector<Tensor> sum;
  };
  void join_last_two(Stream& stream);

  std::vector<Node> nodes_;  // The earlier, the larger.
};

/// Adds up the gradients of a step's micro-batches, which come in order. They are cut into groups
/// of consecutive ones, the larger groups first; within a group a left fold, across groups a tree.
/// So a sum knows nothing of devices, and whole groups may be added up elsewhere.
class GradientFold {
 public:
  GradientFold() = default;
  /// 1 <= groups <= micro_batches.
  GradientFold(int micro_batches, int groups);

  /// What the next micro-batch adds its gradients to: one tensor for each parameter.
  std::span<Tensor> open(Stream& stream, const std::vector<Parameter>& parameters);
  /// The micro-batch has added its own.
  void close(Stream& stream);

  bool idle() const { return done_ == 0; }
  bool complete() const { return micro_batches_ > 0 && done_ == micro_batches_; }
  /// The sum, once complete.
  std::vector<Tensor> take(Stream& stream);

 private:
  int end_of_group() const;

  int micro_batches_ = 0;
  int groups_ = 0;
  int done_ = 0;
  int group_ = 0;
  std::vector<Tensor> current_;
  TreeFold tree_;
};

}  // namespace troupe::models
