#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// Why an attempt to train ended before its time.
struct Failure {
  std::chrono::nanoseconds when{};  // On the actors' clock.
  std::int64_t step = 0;            // Steps that were done by then.
  std::string why;                  // "device 1: step 4, 1F2: ..."
};

/// What a supervisor does about it, and why.
struct Verdict {
  enum class What : std::uint8_t { try_again, give_up };
  What what = What::give_up;
  std::string reason;
};

struct Strikes {
  int allowed = 3;
  std::chrono::nanoseconds window{};
};

/// Looks at all failures of a run, of which the last has just come. What fails twice in the same
/// place in the same way would fail for ever; what fails often is not worth another try.
Verdict judge(const std::vector<Failure>& failures, const Strikes& strikes);

}  // namespace troupe::actors
