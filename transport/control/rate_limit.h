#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "transport/control/strikes.h"

namespace troupe::transport {

/// A token bucket: its size, and its refill rate.
struct Rate {
  double per_second = 0;
  double at_once = 0;
};

/// Limits how often something may happen, per subject (an address) and in total. It tracks at most
/// `subjects`; further ones only share the total.
class RateLimit {
 public:
  RateLimit(Rate each, Rate all, std::size_t subjects = 4096)
      : each_(each), all_(all), subjects_(subjects), total_{all.at_once, {}} {}

  /// Returns whether it may happen now, and counts it if so.
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

/// Returns the limit for reports of refusals: one a minute for each address.
RateLimit limit_of_refusals();

}  // namespace troupe::transport
