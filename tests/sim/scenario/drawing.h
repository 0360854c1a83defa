#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>

#include "simulation/machine/scheduler.h"

namespace troupe::simulation {

/// Draws the scenario of a seed. The scheduler of the seed draws from a generator of its own, so
/// that a scenario with fewer faults can be played with the same seed.
class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return bits_() % bound; }
  int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::uint64_t>(most - least + 1)));
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& all) {
    return all.at(below(N));
  }
  Scheduler::Duration time_below(Scheduler::Duration bound) {
    return Scheduler::Duration(below(static_cast<std::uint64_t>(bound.count()) + 1));
  }
  /// Returns a time of which each order of magnitude is as likely as the others.
  Scheduler::Duration time_between(Scheduler::Duration least, Scheduler::Duration most) {
    auto range = std::array<std::int64_t, 64>{};
    std::size_t count = 0;
    for (auto t = least.count(); t < most.count(); t *= 2) range.at(count++) = t;
    const auto from = range.at(below(count));
    return std::min(Scheduler::Duration(
                        from + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(from)))),
                    most);
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace troupe::simulation
