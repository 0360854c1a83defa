#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mixture.h"
#include "storage/data/order.h"

namespace troupe::storage {

/// The order of a mixture: a map from positions to samples of its sources. A block has each source
/// by its weight, in an order that depends on the seed and the number of the block alone. Each
/// source goes on where it was, in an order of its own, whatever the weights are.
class MixedOrder {
 public:
  struct Drawn {
    std::size_t source = 0;
    Place place;  // The pass over the source, and its sample.

    friend bool operator==(const Drawn&, const Drawn&) = default;
  };

  /// `global` is the number of samples in a step. `counts` has the number of samples of each
  /// source.
  MixedOrder(Mixture mixture, SampleOrder::Kind kind, std::uint64_t seed, std::int64_t global,
             const std::vector<std::int64_t>& counts);

  Drawn at(std::int64_t position) const;
  /// Returns how many samples of each source lie before a position.
  std::vector<std::int64_t> drawn_before(std::int64_t position) const;
  /// Returns the number of the first sample of a source, where the samples of all are numbered.
  std::int64_t first_of(std::size_t source) const { return firsts_[source]; }

 private:
  /// A phase, and where it begins.
  struct Stretch {
    std::int64_t position = 0;         // Its first one.
    std::int64_t block = 0;            // The number of its first block.
    std::int64_t size = 0;             // The positions of a block.
    std::vector<std::int64_t> before;  // The samples of each source that lie before it.
  };

  std::size_t phase_at(std::int64_t position) const;
  /// Returns the source at a place in a block.
  std::size_t source_at(std::size_t phase, std::int64_t block, std::int64_t slot) const;

  Mixture mixture_;
  std::uint64_t seed_;
  std::vector<std::int64_t> firsts_;  // Indexed by source.
  std::vector<SampleOrder> orders_;   // Indexed by source.
  std::vector<Stretch> stretches_;    // Indexed by phase.
};

}  // namespace troupe::storage
