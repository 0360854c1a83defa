#pragma once

#include <cstdint>
#include <vector>

namespace troupe::storage {

/// A source of symbols. From each state it goes on to one of a few, with probabilities that are
/// multiples of 2^-32, so that the same words give the same symbols on every machine.
class MarkovChain {
 public:
  /// A word below `below`, and not below that of the arc before, leads to `next`. The last arc of a
  /// state has 2^32.
  struct Arc {
    std::int32_t next = 0;
    std::uint64_t below = 0;
  };

  /// `arcs[s]` are those of state s; from every state every other one can be reached.
  explicit MarkovChain(std::vector<std::vector<Arc>> arcs);

  /// Successors and their unequal probabilities are drawn by the seed.
  static MarkovChain drawn(std::uint64_t seed, std::int32_t states, std::int32_t successors);

  std::int32_t states() const { return static_cast<std::int32_t>(arcs_.size()); }
  /// A state as the source is in it after a long time.
  std::int32_t start(std::uint32_t word) const;
  std::int32_t next(std::int32_t state, std::uint32_t word) const;

  /// How often the source is in each state, over a long time.
  const std::vector<double>& stationary() const { return stationary_; }
  /// Nats per symbol: the sum over states of how often they come times the entropy of their arcs.
  double entropy_rate() const;

 private:
  void find_stationary();

  std::vector<std::vector<Arc>> arcs_;
  std::vector<double> stationary_;
  std::vector<std::uint64_t> start_below_;
};

}  // namespace troupe::storage
