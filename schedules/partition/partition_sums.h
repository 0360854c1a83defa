#pragma once

#include <vector>

#include "schedules/partition/partition.h"

namespace troupe::schedules {

/// A chain whose pieces are merged where no cut is allowed, as prefix sums: every question about a
/// range of pieces is answered at once. Place i lies before merged piece i. Part of partition().
class ChainSums {
 public:
  explicit ChainSums(const Chain& chain);

  int size() const { return static_cast<int>(work_.size()) - 1; }

  double work(int i, int j) const { return work_[j] - work_[i]; }
  Bytes weights(int i, int j) const { return weights_[j] - weights_[i]; }
  Bytes reduced(int i, int j) const { return reduced_[j] - reduced_[i]; }
  Bytes boundary(int i) const { return boundary_[i]; }

  /// What these pieces hold in this seat, second copies of tied parameters aside.
  Bytes untied_memory(int i, int j, const Seat& seat) const {
    return seat.copies * (weights_[j] - weights_[i]) + (fixed_[j] - fixed_[i]) +
           seat.in_flight * (stash_[j] - stash_[i]);
  }
  /// The most that a pass through one of these pieces needs beside what they hold.
  Bytes passing(int i, int j) const;

  /// What a stage of these pieces needs in all: never less if it is longer.
  Bytes memory(int i, int j, const Seat& seat) const {
    return untied_memory(i, j, seat) + passing(i, j) + (ties_.empty() ? 0 : second_copies(i, j));
  }

  /// Between merged pieces, first before second.
  const std::vector<Tie>& ties() const { return ties_; }

  /// The last place up to which a stage that begins at i may reach.
  int next_required(int i) const { return next_required_[i]; }
  /// The first place at which a stage that ends at j may begin.
  int previous_required(int j) const { return previous_required_[j]; }

  /// Cuts at these places, in terms of the chain that was given; and the other way round.
  std::vector<int> in_chain(const std::vector<int>& places) const;
  std::vector<int> merged(const std::vector<int>& cuts) const;

 private:
  /// Of pieces in the range whose partner lies outside.
  Bytes second_copies(int i, int j) const;

  std::vector<double> work_;
  std::vector<Bytes> weights_, fixed_, stash_, reduced_;
  std::vector<Bytes> boundary_;              // At each place; nothing crosses the ends.
  std::vector<std::vector<Bytes>> passing_;  // [k][i]: the largest of 2^k pieces from i on.
  std::vector<int> next_required_, previous_required_;
  std::vector<int> place_in_chain_;
  std::vector<Tie> ties_;
};

}  // namespace troupe::schedules
