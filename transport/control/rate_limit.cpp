#include "transport/control/rate_limit.h"

#include <algorithm>

namespace troupe::transport {

void RateLimit::fill(Bucket& bucket, Rate rate, TimePoint now) {
  const std::chrono::duration<double> passed = now - bucket.filled;
  bucket.tokens = std::min(rate.at_once, bucket.tokens + passed.count() * rate.per_second);
  bucket.filled = now;
}

bool RateLimit::admit(const std::string& subject, TimePoint now) {
  fill(total_, all_, now);
  if (total_.tokens < 1) return false;

  auto found = buckets_.find(subject);
  if (found == buckets_.end() && buckets_.size() >= subjects_)
    std::erase_if(buckets_, [&](const auto& entry) {
      // A full bucket is as good as none.
      Bucket bucket = entry.second;
      fill(bucket, each_, now);
      return bucket.tokens >= each_.at_once;
    });
  if (found == buckets_.end() && buckets_.size() < subjects_)
    found = buckets_.emplace(subject, Bucket{each_.at_once, now}).first;
  if (found != buckets_.end()) {
    fill(found->second, each_, now);
    if (found->second.tokens < 1) return false;
    found->second.tokens -= 1;
  }
  total_.tokens -= 1;
  return true;
}

RateLimit limit_of_refusals() {
  return {{.per_second = 1.0 / 60, .at_once = 1}, {.per_second = 10, .at_once = 100}};
}

}  // namespace troupe::transport
