#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "storage/data/order.h"

namespace troupe::storage {

/// A recipe for mixing sources of samples: "a.bin 7, b.bin 2; from 2000: a.bin 1, b.bin 1". Of each
/// block of 7 + 2 samples, 7 are of a.bin. From step 2000 on blocks of two have one of each.
struct Mixture {
  struct Part {
    std::size_t source = 0;  // An index of `sources`.
    std::int64_t weight = 0;

    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Phase {
    std::int64_t from = 0;  // The step that it begins with.
    std::vector<Part> parts;

    friend bool operator==(const Phase&, const Phase&) = default;
  };
  std::vector<std::string> sources;  // Each once, in the order in which they are named.
  std::vector<Phase> phases;         // The first one is from step 0 on.

  /// The error says which part of the text is wrong.
  static Result<Mixture> parse(std::string_view text);
  /// Returns a text that parses to an equal mixture.
  std::string text() const;

  friend bool operator==(const Mixture&, const Mixture&) = default;
};

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
