#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include "transport/control/strikes.h"

namespace troupe::transport {

struct BackoffRules {
  Duration first = std::chrono::milliseconds(50);
  Duration longest = std::chrono::seconds(2);
};

/// Exponential back-off with random jitter: the delay doubles each time, minus up to half of it, so
/// that clients of one head do not all reconnect at once.
class Backoff {
 public:
  Backoff(BackoffRules rules, std::uint64_t seed)
      : rules_(rules), random_(seed), next_(rules.first) {}

  Duration next() {
    const Duration most = next_;
    next_ = std::min(2 * next_, rules_.longest);
    using Count = Duration::rep;
    return Duration(
        std::uniform_int_distribution<Count>((most / 2).count(), most.count())(random_));
  }
  void reset() { next_ = rules_.first; }

 private:
  BackoffRules rules_;
  std::mt19937_64 random_;
  Duration next_;
};

}  // namespace troupe::transport
