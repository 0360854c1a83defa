#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "actors/wait.h"

namespace troupe::actors {

/// The reason why an attempt ended early.
struct Failure {
  std::chrono::nanoseconds when{};  // Time of the actors' clock.
  std::string why;                  // With the place: "device 1: step 4, 1F2: ..."
  std::string node = {};  // The node that the run avoids for a while because of it, or empty.
};

/// The supervisor's reaction to a failure, and its reason.
struct Verdict {
  enum class What : std::uint8_t { try_again, give_up };
  What what = What::give_up;
  std::string reason;
};

struct Strikes {
  int allowed = 3;
  std::chrono::nanoseconds window{};
};

/// Decides how to react to the last of all failures of a run. It gives up if the same failure
/// occurred before at the same place, unless that was on a node which is now avoided, or if
/// failures are too frequent.
Verdict judge(const std::vector<Failure>& failures, const Strikes& strikes);

/// The known state of an actor of a run.
struct Standing {
  std::string who;
  Wait wait = {};
  int patiences = 0;  // Intervals for which it has waited for this.
  int silent = 0;     // Intervals since the actor was last heard of.
};

/// The diagnosis of a run that stands still. If one actor is slow, all others wait for it, and that
/// is no failure. A run stands still once no actor has made progress for the allowed time.
struct Standstill {
  std::string who;  // The likely cause: an actor that computes rather than one that waits.
  std::string what;
};
std::optional<Standstill> find_standstill(const std::vector<Standing>& all, const Allowed& allowed);

}  // namespace troupe::actors
