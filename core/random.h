#pragma once

#include <array>
#include <cstdint>

namespace troupe {

/// Philox4x32-10: computes four random words from a counter and a key (Salmon et al. 2011). Results
/// depend on counter and key alone, never on the thread, machine or time.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The identity of a random number. `operation` is a layer's position in the whole model, so that
/// plans do not change it. `sample` is a position in the step's batch.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t sample = 0;
  std::uint32_t operation = 0;

  /// Returns the words of elements 4 * block ... 4 * block + 3.
  constexpr std::array<std::uint32_t, 4> words(std::uint32_t block) const {
    return philox({block, operation, sample, step},
                  {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }
};

/// Maps a word to [0, 1), on a grid of 2^-24.
constexpr float uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Computes two independent standard normal numbers from two words (Box and Muller). It uses + - *
/// / and sqrt alone, so it gives equal bits on every machine.
std::array<float, 2> normal_pair(std::uint32_t a, std::uint32_t b);

}  // namespace troupe
