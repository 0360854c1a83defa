#pragma once

#include <cstdint>

namespace troupe::models {

/// What `staleness` says in the configuration: which weights the passes of a micro-batch see when
/// steps come between them, and how a late gradient is mended. Without steps between passes none of
/// it changes anything.
struct StalenessOptions {
  /// What the forward pass sees: the newest weights, or those expected at the backward pass.
  enum class Predict : std::uint8_t { none, msnag, aggmsnag, linear };
  /// Where the backward pass linearises: at the newest weights, or at those of the forward pass,
  /// which is weight stashing.
  enum class LinearizeAt : std::uint8_t { current, forward };
  /// Whether gradients are divided by 1 + the distance of weights between the passes.
  enum class GapPenalty : std::uint8_t { none, elementwise };

  Predict predict = Predict::none;
  LinearizeAt linearize_at = LinearizeAt::current;
  GapPenalty gap_penalty = GapPenalty::none;
};

}  // namespace troupe::models
