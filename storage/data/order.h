#pragma once

#include <cstdint>

namespace troupe::storage {

/// A keyed bijection on [0, count): the sample at place `i` of a pass. It is computed, not stored,
/// so that anyone finds any sample of any pass at once, and there is no shuffle buffer to save.
std::int64_t permute(std::uint64_t seed, std::int64_t pass, std::int64_t i, std::int64_t count);

/// Its inverse: the place at which a sample comes.
std::int64_t unpermute(std::uint64_t seed, std::int64_t pass, std::int64_t sample,
                       std::int64_t count);

/// A sample, and the pass over the data in which it is used.
struct Place {
  std::int64_t pass = 0;
  std::int64_t sample = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// Which sample comes at which position of training, pass after pass without end. A step of B
/// samples uses positions [step * B, (step + 1) * B), and may span two passes.
class SampleOrder {
 public:
  enum class Kind { shuffled, sequential };

  /// `count` samples are in a pass; at least 1.
  SampleOrder(Kind kind, std::uint64_t seed, std::int64_t count);

  Place at(std::int64_t position) const;
  std::int64_t position_of(const Place& place) const;

 private:
  Kind kind_;
  std::uint64_t seed_;
  std::int64_t count_;
};

}  // namespace troupe::storage
