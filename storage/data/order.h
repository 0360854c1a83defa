#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::storage {

/// Returns the sample at index `i` of a pass, by a keyed bijection on [0, count). It is computed,
/// not stored, so anyone finds any sample at once and no shuffle buffer needs saving.
std::int64_t permute(std::uint64_t seed, std::int64_t pass, std::int64_t i, std::int64_t count);

/// Returns the index in the pass at which a sample comes: the inverse of permute().
std::int64_t unpermute(std::uint64_t seed, std::int64_t pass, std::int64_t sample,
                       std::int64_t count);

class MixedOrder;

/// A sample, and the pass over the data that uses it.
struct Place {
  std::int64_t pass = 0;
  std::int64_t sample = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The order of training: a map from positions to samples, pass after pass without end. A step of B
/// samples uses positions [step * B, (step + 1) * B) and may span two passes. The samples of a
/// mixture are numbered source after source, and each source has passes of its own.
class SampleOrder {
 public:
  enum class Kind { shuffled, sequential };

  /// `count` is the number of samples in a pass, at least 1.
  SampleOrder(Kind kind, std::uint64_t seed, std::int64_t count);
  explicit SampleOrder(std::shared_ptr<const MixedOrder> mixed);

  Place at(std::int64_t position) const;
  /// Finds the position of a place, unless the order is a mixture's.
  std::int64_t position_of(const Place& place) const;
  /// Returns how many of `count` samples from a position on each source of a mixture has. Returns
  /// nothing if there is one source.
  std::vector<std::int64_t> of_sources(std::int64_t first, std::int64_t count) const;

 private:
  Kind kind_ = Kind::shuffled;
  std::uint64_t seed_ = 0;
  std::int64_t count_ = 1;
  std::shared_ptr<const MixedOrder> mixed_;  // Null: there is one source.
};

}  // namespace troupe::storage
