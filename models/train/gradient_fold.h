#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// The reduction groups of a step's micro-batches that one replica of a stage processes.
struct Share {
  int micro_batches = 1;  // Micro-batches of the step, over all shares.
  int groups = 1;         // Groups of the step: consecutive micro-batches, larger groups first.
  int first_group = 0;    // The groups of this share: [first_group, last_group).
  int last_group = 1;

  /// Returns the share that covers a whole step.
  static Share whole(int micro_batches, int groups) { return {micro_batches, groups, 0, groups}; }

  /// Returns the index in the step of a group's first micro-batch.
  int begin_of(int group) const;
  int first_micro_batch() const { return begin_of(first_group); }
  int count() const { return begin_of(last_group) - begin_of(first_group); }
};

/// A node of the reduction tree: the sum of some consecutive groups.
struct PartialSum {
  int first_group = 0;
  int groups = 1;
  std::vector<Tensor> slots;
};

/// A sum of leaves, pushed one after another, by a binary tree. Its shape depends only on the
/// number of leaves: each node splits at the largest power of two below its size. It holds at most
/// log2(leaves) + 1 sums. A pushed node may be a subtree that was added up elsewhere.
class TreeFold {
 public:
  /// Appends a node that follows the previous one. Consumes its tensors.
  void push(Stream& stream, PartialSum node);
  /// Returns how many additions push() would do for the next leaf.
  int joins() const;
  /// Returns the nodes in order and empties the fold.
  std::vector<PartialSum> take();
  /// Returns the sum of all leaves and empties the fold. The first leaf must be number 0.
  std::vector<Tensor> finish(Stream& stream);

  int sums() const { return static_cast<int>(nodes_.size()); }
  const std::vector<PartialSum>& nodes() const { return nodes_; }

 private:
  void join_last_two(Stream& stream);

  std::vector<PartialSum> nodes_;  // Each node begins with the group after the previous node.
};

/// The gradient sum of a share's micro-batches, which come in order: a left fold within a group, a
/// tree across groups. So the order of additions does not depend on the number of devices.
class GradientFold {
 public:
  GradientFold() = default;
  explicit GradientFold(const Share& share);

  /// Returns the tensors that the next micro-batch adds its gradients to, one for each parameter. A
  /// tensor is empty if nothing has been added yet.
  std::span<Tensor> open(std::size_t parameters);
  /// Like open(), but apart from earlier micro-batches until close(). Returns `sets` sets of
  /// tensors. The first set is zero, but empty for frozen parameters; the others are empty, which
  /// counts as zero.
  std::span<Tensor> open_apart(Stream& stream, const std::vector<Parameter>& parameters, int sets);
  /// Ends the micro-batch that open() or open_apart() began.
  void close(Stream& stream);

  /// Returns a number for the next micro-batch's work from open() to close(). Equal numbers mean
  /// equal allocations and releases.
  std::uint64_t next_kind() const;

  int done() const { return done_; }
  /// Returns one parameter's sum so far, or an empty tensor. Later micro-batches may change the
  /// tensor.
  Tensor so_far(Stream& stream, std::size_t slot) const;

  bool idle() const { return done_ == 0; }
  bool complete() const { return done_ > 0 && done_ == share_.count(); }
  /// Returns the sums. The share must be complete.
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
