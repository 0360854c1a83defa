#pragma once

#include <array>
#include <cstdint>

#include "core/random.h"

namespace troupe::storage {

/// The selection of generated data. `seed` fixes the distribution, `stream` tells training from
/// validation.
struct DrawKey {
  std::uint64_t seed = 1;
  std::uint32_t stream = 0;
};

/// The random words of one sample, in order.
class Draws {
 public:
  Draws(const DrawKey& key, std::int64_t sample) : key_(key), sample_(sample) {}

  std::uint32_t next() {
    if (used_ == 4) {
      words_ = philox(
          {block_++, static_cast<std::uint32_t>(sample_), static_cast<std::uint32_t>(sample_ >> 32),
           key_.stream},
          {static_cast<std::uint32_t>(key_.seed), static_cast<std::uint32_t>(key_.seed >> 32)});
      used_ = 0;
    }
    return words_[used_++];
  }

  /// Draws uniformly from [least, most], with a bias below (most - least) / 2^32.
  std::int32_t between(std::int32_t least, std::int32_t most) {
    const auto range = static_cast<std::uint64_t>(most - least) + 1;
    return least + static_cast<std::int32_t>((next() * range) >> 32);
  }

 private:
  DrawKey key_;
  std::int64_t sample_;
  std::uint32_t block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = 4;
};

/// The stream that draws the distribution itself. No dataset of samples uses it.
constexpr std::uint32_t source_stream = 0xffffffffu;

}  // namespace troupe::storage
