#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/wait.h"

namespace troupe::actors {

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

/// Returns whether any of them has made progress within the last interval.
bool has_progress(const std::vector<Standing>& all);

}  // namespace troupe::actors
