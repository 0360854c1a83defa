#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "schedules/partition/partition.h"

/// Small random problems, and answers to them found by trying everything.
namespace troupe::schedules::testing {

/// Numbers that depend on the seed alone.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : key_{.seed = seed} {}

  /// From `least` to `most`, both included.
  int roll(int least, int most) {
    return least +
           static_cast<int>(key_.words(next_++)[0] % static_cast<std::uint32_t>(most - least + 1));
  }
  bool one_in(int count) { return roll(1, count) == 1; }

 private:
  RandomKey key_;
  std::uint32_t next_ = 0;
};

/// 1 to `most` units with small whole costs; in some cases with units that are heavy, may not be
/// parted or must be, or are tied.
Chain random_chain(Dice& dice, int most);

/// One seat on each of `count` devices. Speeds, memories, links and what a seat holds differ.
PartitionProblem random_straight(Dice& dice, int most_units, int most_devices);

/// Two seats on each of `count` devices, in a V.
PartitionProblem random_folded(Dice& dice, int most_units, int most_devices);

/// The smallest bottleneck over all cuts that are allowed and fit; negative if there are none.
double best_by_trying(const PartitionProblem& problem);

/// Whether these cuts are allowed and fit, from first principles.
bool valid(const PartitionProblem& problem, const std::vector<int>& cuts);

/// The time of the busiest device or link, from first principles.
double bottleneck_of(const PartitionProblem& problem, const std::vector<int>& cuts);

}  // namespace troupe::schedules::testing
