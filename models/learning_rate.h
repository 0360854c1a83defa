#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::models {

/// The learning rate as a function of the step. During warm-up, step k (from 0) has the rate lr (k
/// + 1) / warmup_steps, or lr k / warmup_steps if warm-up begins at zero. After it the rate stays
/// constant, or falls to min_lr at total_steps along a line or half a cosine, or (wsd: warm-up,
/// stable, decay) stays constant and falls in the last decay_steps of total_steps. A Change
/// replaces lr from its step on and alters nothing else.
struct LearningRate {
  enum class Kind { constant, linear, cosine, wsd };
  /// The fall of wsd: along a line, or as 1 - sqrt(progress), which falls fast at first.
  enum class Decay { linear, sqrt };
  enum class Warmup { above_zero, from_zero };
  struct Change {
    std::int64_t from = 0;
    double lr = 0;

    friend bool operator==(const Change&, const Change&) = default;
  };

  Kind kind = Kind::constant;
  double lr = 1e-3;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double min_lr = 0;
  std::optional<std::int64_t> decay_steps = {};  // For wsd. Unset: a tenth of total_steps.
  Decay decay = Decay::linear;
  Warmup warmup = Warmup::above_zero;
  std::vector<Change> changes = {};  // In ascending order of their steps.
  double factor = 1;                 // On every rate, for a group of parameters.

  double at(std::int64_t step) const;
  /// Returns the length of the fall of wsd.
  std::int64_t steps_of_decay() const;
  /// Returns the highest rate of steps 0 to `step`.
  double highest_until(std::int64_t step) const;
};

}  // namespace troupe::models
