#pragma once

#include <cstdint>

namespace troupe::storage {

/// Returns the sample at index `i` of a pass, by a keyed bijection on [0, count). It is computed,
/// not stored, so anyone finds any sample at once and no shuffle buffer needs saving.
std::int64_t permute(std::uint64_t seed, std::int64_t pass, std::int64_t i, std::int64_t count);

/// Returns the index in the pass at which a sample comes: the inverse of permute().
std::int64_t unpermute(std::uint64_t seed, std::int64_t pass, std::int64_t sample,
                       std::int64_t count);

/// A sample, and the pass over the data that uses it.
struct Place {
  std::int64_t pass = 0;
  std::int64_t sample = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The order of training: a map from positions to samples, pass after pass without end. A step of B
/// samples uses positions [step * B, (step + 1) * B) and may span two passes.
class SampleOrder {
 public:
  enum class Kind { shuffled, sequential };

  /// `count` is the number of samples in a pass, at least 1.
  SampleOrder(Kind kind, std::uint64_t seed, std::int64_t count);

  Place at(std::int64_t position) const;
  std::int64_t position_of(const Place& place) const;

 private:
  Kind kind_;
  std::uint64_t seed_;
  std::int64_t count_;
};

}  // namespace troupe::storage
