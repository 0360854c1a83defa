#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// What of a step's micro-batches passes through one holder of a stage: whole reduction groups.
struct Share {
  int micro_batches = 1;  // Of the step, all shares together.
  int groups = 1;         // Likewise: consecutive micro-batches, the larger groups first.
  int first_group = 0;    // The groups of this share: [first_group, last_group).
  int last_group = 1;

  /// All of a step.
  static Share whole(int micro_batches, int groups) { return {micro_batches, groups, 0, groups}; }

  /// Where a group begins among the step's micro-batches.
  int begin_of(int group) const;
  int first_micro_batch() const { return begin_of(first_group); }
  int count() const { return begin_of(last_group) - begin_of(first_group); }
};

/// A node of the tree over all groups: the sum of some consecutive ones.
struct PartialSum {
  int first_group = 0;
  int groups = 1;
  std::vector<Tensor> slots;
};

/// Adds up leaves that come one after another by a binary tree whose shape depends on their number
/// alone: each node splits at the largest power of two below its size. Keeps at most log2(leaves) +
/// 1 sums. What comes may be whole nodes of the tree, added up elsewhere.
class TreeFold {
 public:
  /// Follows on the one before. Its tensors are used up.
  void push(Stream& stream, PartialSum node);
  /// How often push() adds two up where a leaf comes.
  int joins() const;
  /// What is there, in order; then the fold is empty again.
  std::vector<PartialSum> take();
  /// The sum of all leaves, which have come from the first on; then the fold is empty again.
  std::vector<Tensor> finish(Stream& stream);

  int sums() const { return static_cast<int>(nodes_.size()); }
  const std::vector<PartialSum>& nodes() const { return nodes_; }

 private:
  void join_last_two(Stream& stream);

  std::vector<PartialSum> nodes_;  // Each begins where the one before ends.
};

/// Adds up the gradients of a share's micro-batches, which come in order: within a group a left
/// fold, across groups the nodes of a tree. So a sum knows nothing of devices.
class GradientFold {
 public:
  GradientFold() = default;
  explicit GradientFold(const Share& share);

  /// What the next micro-batch adds its gradients to: one tensor for each parameter, which is empty
  /// where nothing has been added yet.
  std::span<Tensor> open(std::size_t parameters);
  /// The same, but apart from those of others until close(): `sets` tensors for each parameter, set
  /// after set; the first set is zero, and the others are empty, which counts as zero.
  std::span<Tensor> open_apart(Stream& stream, const std::vector<Parameter>& parameters, int sets);
  /// The micro-batch has added its own.
  void close(Stream& stream);

  /// What the next micro-batch does here, from open() to close(): those of equal numbers make and
  /// let go of the same tensors.
  std::uint64_t next_kind() const;

  int done() const { return done_; }
  /// What was added up so far for one parameter; empty where there is nothing. Later micro-batches
  /// may change it.
  Tensor so_far(Stream& stream, std::size_t slot) const;

  bool idle() const { return done_ == 0; }
  bool complete() const { return done_ > 0 && done_ == share_.count(); }
  /// The sums, once complete.
  std::vector<PartialSum> take();

 private:
  bool next_ends_group() const;

  Share share_;
  int done_ = 0;
  int group_ = 0;
  std::vector<Tensor> current_;
  std::vector<Tensor> apart_;
  TreeFold tree_;
};

}  // namespace troupe::models
