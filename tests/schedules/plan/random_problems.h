#pragma once

#include <cstdint>
#include <vector>

#include "core/random.h"
#include "schedules/partition/partition.h"

/// Small random problems, and their solutions by exhaustive search.
namespace troupe::schedules::testing {

/// Random numbers that depend only on the seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : key_{.seed = seed} {}

  /// Returns a number from `least` to `most`, both included.
  int roll(int least, int most) {
    return least +
           static_cast<int>(key_.words(next_++)[0] % static_cast<std::uint32_t>(most - least + 1));
  }
  bool one_in(int count) { return roll(1, count) == 1; }

 private:
  RandomKey key_;
  std::uint32_t next_ = 0;
};

/// Returns 1 to `most` units with small integer costs. Some chains have heavy or tied units, or
/// forbidden or required cuts.
Chain random_chain(Dice& dice, int most);

/// Returns a problem with one seat per device. Speeds, memories, links and seats differ.
PartitionProblem random_straight(Dice& dice, int most_units, int most_devices);

/// Returns a problem with two seats per device, in a V.
PartitionProblem random_folded(Dice& dice, int most_units, int most_devices);

/// Returns the smallest bottleneck over all valid cuts that fit, or a negative number.
double best_by_trying(const PartitionProblem& problem);

/// Returns whether these cuts are allowed and fit, from first principles.
bool valid(const PartitionProblem& problem, const std::vector<int>& cuts);

/// Returns the time of the busiest device or link, from first principles.
double bottleneck_of(const PartitionProblem& problem, const std::vector<int>& cuts);

}  // namespace troupe::schedules::testing
