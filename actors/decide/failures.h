#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// A failure that ended an attempt.
struct Failure {
  std::chrono::nanoseconds when{};  // Any clock may be used.
  std::string why;                  // With the place: "device 1: step 4, 1F2: ..."
  std::string node = {};  // The node that the run avoids for a while because of it, or empty.
};

/// How many failures a run bears, not counting those on nodes that it then avoids.
struct FailureLimits {
  int allowed = 3;
  std::chrono::nanoseconds window = std::chrono::minutes(10);
};

/// The meaning of a run's last failure, and the reason.
struct Verdict {
  enum class What : std::uint8_t { try_again, fails_again, fails_too_often };
  What what = What::try_again;
  std::string reason;
};

/// Judges the last of all failures of a run. The run is to end if the same failure occurred before
/// at the same place, unless that was on a node which is now avoided, or if failures are too
/// frequent.
Verdict judge(const std::vector<Failure>& failures, const FailureLimits& limits);

}  // namespace troupe::actors
