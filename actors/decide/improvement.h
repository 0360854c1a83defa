#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/early_stop.h"
#include "storage/checkpoint/evaluation_log.h"

namespace troupe::actors {

// Pure functions of a run's evaluations, in the order of their steps. Equal evaluations give equal
// answers, whatever recoveries and processes lie between them.

/// Why a run ends early, and what its best evaluation is.
struct Stopped {
  storage::EvaluatedStep best;
  std::string why;
};
/// Returns nothing if the run goes on.
std::optional<Stopped> stops_early(std::span<const storage::EvaluatedStep> evaluations,
                                   const EarlyStop& rule);

/// Returns whether the newest evaluation is among the `most` with the lowest loss. Of equal losses
/// the earlier one is better.
bool newest_is_among_best(std::span<const storage::EvaluatedStep> evaluations, int most);

}  // namespace troupe::actors
