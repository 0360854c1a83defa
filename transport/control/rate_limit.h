#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "transport/control/strikes.h"

namespace troupe::transport {

/// A token bucket: `at_once` tokens at first, and `per_second` new ones each second.
struct Rate {
  double per_second = 0;
  double at_once = 0;
};

/// Limits how often something may happen, for each subject (an address) and for all together. It
/// remembers at most `subjects` subjects; further subjects share the limit for all.
class RateLimit {
 public:
  RateLimit(Rate each, Rate all, std::size_t subjects = 4096)
      : each_(each), all_(all), subjects_(subjects), total_{all.at_once, {}} {}

  /// Whether it may happen now. If so, it takes a token.
  bool admit(const std::string& subject, TimePoint now);
  std::size_t remembered() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint filled;
  };

  static void fill(Bucket& bucket, Rate rate, TimePoint now);

  Rate each_;
  Rate all_;
  std::size_t subjects_;
  Bucket total_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace troupe::transport
