#pragma once

#include <cstdint>

namespace troupe::models {

/// What the gradient of the loss is multiplied by where products are in fp16, so that small
/// gradients do not vanish there: a power of two, so that dividing by it changes no digit. It
/// follows from which of the steps before overflowed, and so is part of a run's state.
struct LossScale {
  int power = 0;
  std::int64_t steady_steps = 0;   // In a row and at this scale, without overflow.
  std::int64_t skipped_steps = 0;  // Of the run: that overflowed.

  double factor() const;

  friend bool operator==(const LossScale&, const LossScale&) = default;
};

/// How it goes on from step to step. What is not in fp16 has none: the scale stays at 1, and
/// nothing is counted.
struct LossScaling {
  static constexpr int most_power = 24;

  int initial_power = 0;
  std::int64_t growth_interval = 0;  // Steady steps after which it doubles; 0: there is none.

  bool is_on() const { return growth_interval > 0; }
  LossScale first() const { return {.power = initial_power}; }
  /// After a step without overflow.
  LossScale after_step(LossScale last) const;
  /// After one that was skipped. What overflows at a scale of 1 is the caller's to halt at.
  LossScale after_overflow(LossScale last) const;
  bool can_skip(const LossScale& scale) const { return is_on() && scale.power > 0; }
};

}  // namespace troupe::models
