#pragma once

#include <vector>

#include "schedules/partition/partition.h"

namespace troupe::schedules {

/// Prefix sums over a chain whose pieces are merged if no cut is allowed between them. Queries
/// about a range take constant time. Place i lies before merged piece i. Part of partition().
class ChainSums {
 public:
  explicit ChainSums(const Chain& chain);

  int size() const { return static_cast<int>(work_.size()) - 1; }

  double work(int i, int j) const { return work_[j] - work_[i]; }
  Bytes weights(int i, int j) const { return weights_[j] - weights_[i]; }
  Bytes reduced(int i, int j) const { return reduced_[j] - reduced_[i]; }
  Bytes boundary(int i) const { return boundary_[i]; }

  /// Returns the bytes of these pieces in this seat, without second copies of tied parameters.
  Bytes untied_memory(int i, int j, const Seat& seat) const {
    return seat.copies * (weights_[j] - weights_[i]) + (fixed_[j] - fixed_[i]) +
           seat.in_flight * (stash_[j] - stash_[i]);
  }
  /// Returns the most extra bytes that a pass through one of these pieces needs.
  Bytes passing(int i, int j) const;

  /// Returns all bytes of a stage of these pieces. A longer stage never needs less.
  Bytes memory(int i, int j, const Seat& seat) const {
    return untied_memory(i, j, seat) + passing(i, j) + (ties_.empty() ? 0 : second_copies(i, j));
  }

  /// Ties between merged pieces, with first before second.
  const std::vector<Tie>& ties() const { return ties_; }

  /// Returns the last place at which a stage that begins at i may end.
  int next_required(int i) const { return next_required_[i]; }
  /// Returns the first place at which a stage that ends at j may begin.
  int previous_required(int j) const { return previous_required_[j]; }

  /// Convert between places and cuts of the original chain.
  std::vector<int> in_chain(const std::vector<int>& places) const;
  std::vector<int> merged(const std::vector<int>& cuts) const;

 private:
  /// Returns the bytes of tied pieces in the range whose owner lies before it.
  Bytes second_copies(int i, int j) const;

  std::vector<double> work_;
  std::vector<Bytes> weights_, fixed_, stash_, reduced_;
  std::vector<Bytes> boundary_;              // At each place; 0 at both ends.
  std::vector<std::vector<Bytes>> passing_;  // [k][i]: the largest of 2^k pieces from i on.
  std::vector<int> next_required_, previous_required_;
  std::vector<int> place_in_chain_;
  std::vector<Tie> ties_;
};

}  // namespace troupe::schedules
