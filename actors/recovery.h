#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "actors/wait.h"

namespace troupe::actors {

/// Why an attempt to train ended before its time.
struct Failure {
  std::chrono::nanoseconds when{};  // On the actors' clock.
  std::string why;                  // And where: "device 1: step 4, 1F2: ..."
  std::string node = {};            // That the run does without for a while, therefore; or none.
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
/// place in the same way would fail for ever, but where it is a node that is done without; what
/// fails often is not worth another try.
Verdict judge(const std::vector<Failure>& failures, const Strikes& strikes);

/// How an actor of a run is, as far as is known.
struct Standing {
  std::string who;
  Wait wait = {};
  int patiences = 0;  // For how long it was this wait already.
  int silent = 0;     // Patiences since anything was heard of the actor.
};

/// A run moves or stands still as a whole: for one that is slow the others wait, and that is no
/// mistake. It stands still once nobody has moved for as long as is allowed.
struct Standstill {
  std::string who;  // At the root of it, as far as can be told: who computes before who waits.
  std::string what;
};
std::optional<Standstill> find_standstill(const std::vector<Standing>& all, const Allowed& allowed);

}  // namespace troupe::actors
