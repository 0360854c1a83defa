#pragma once

#include <cstdint>
#include <vector>

namespace troupe::storage {

/// A source of symbols. Each state has a few successors, with probabilities that are multiples of
/// 2^-32, so that the same random words give the same symbols on every machine.
class MarkovChain {
 public:
  /// A transition to `next`, taken for random words in [`below` of the previous arc, `below`). A
  /// state's last arc has 2^32.
  struct Arc {
    std::int32_t next = 0;
    std::uint64_t below = 0;
  };

  /// `arcs[s]` are the arcs of state s. Every state must be reachable from every other one.
  explicit MarkovChain(std::vector<std::vector<Arc>> arcs);

  /// Draws successors and their unequal probabilities by the seed.
  static MarkovChain drawn(std::uint64_t seed, std::int32_t states, std::int32_t successors);

  std::int32_t states() const { return static_cast<std::int32_t>(arcs_.size()); }
  /// Draws a state from the stationary distribution.
  std::int32_t start(std::uint32_t word) const;
  std::int32_t next(std::int32_t state, std::uint32_t word) const;

  /// Returns the stationary distribution: how often the source is in each state in the long run.
  const std::vector<double>& stationary() const { return stationary_; }
  /// Returns nats per symbol: the states' mean entropy under the stationary distribution.
  double entropy_rate() const;

 private:
  void find_stationary();

  std::vector<std::vector<Arc>> arcs_;
  std::vector<double> stationary_;
  std::vector<std::uint64_t> start_below_;
};

}  // namespace troupe::storage
