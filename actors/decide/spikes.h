#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "actors/spike_rule.h"

namespace troupe::actors {

// Pure functions of a run's losses and gradient norms, and of the steps that it left out. Equal
// numbers give equal answers, whatever recoveries and processes lie between them.

/// Returns why the loss of a step is a spike, or nothing if it is none. `before` has the losses of
/// the steps before it that changed weights, at most `rule.window` of them. With fewer losses only
/// one that is not finite is a spike.
std::optional<std::string> spikes(double loss, std::span<const double> before,
                                  const SpikeRule& rule);

/// The same for the norm of a step's gradients. Does not look at norms if the rule has no factor
/// for them.
std::optional<std::string> norm_spikes(double norm, std::span<const double> before,
                                       const SpikeRule& rule);

/// Returns why a spike ends the run, or nothing if the run may leave out the step. `left_out` has
/// the steps that were left out, in order. Steps count from 1.
std::optional<std::string> ends_at_spike(std::int64_t step, std::span<const std::int64_t> left_out,
                                         const SpikeRule& rule);

}  // namespace troupe::actors
