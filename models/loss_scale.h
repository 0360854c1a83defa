#pragma once

#include <cstdint>

namespace troupe::models {

/// The factor on the loss that keeps small gradients from vanishing in fp16. It is a power of two,
/// so that dividing by it rounds nothing. It depends on which earlier steps overflowed, so a run
/// saves it with its state.
struct LossScale {
  int power = 0;
  std::int64_t steady_steps = 0;  // Steps in a row at this scale without overflow.
  std::int64_t skipped_steps =
      0;  // Steps of the run that overflowed, or had no target that counts.

  double factor() const;

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

/// The policy that changes the loss scale from step to step. Only fp16 has one. In other precisions
/// the scale stays at 1 and nothing is counted.
struct LossScaling {
  static constexpr int most_power = 24;

  int initial_power = 0;
  /// Steps without overflow after which the scale doubles. 0 turns loss scaling off.
  std::int64_t growth_interval = 0;

  bool is_on() const { return growth_interval > 0; }
  LossScale first() const { return {.power = initial_power}; }
  /// Returns the scale after a step without overflow.
  LossScale after_step(LossScale last) const;
  /// Returns the scale after a skipped step. At a scale of 1 the caller must halt instead.
  LossScale after_overflow(LossScale last) const;
  bool can_skip(const LossScale& scale) const { return is_on() && scale.power > 0; }
};

}  // namespace troupe::models
