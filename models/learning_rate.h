#pragma once

#include <cstdint>
#include <vector>

namespace troupe::models {

/// The learning rate as a function of the step. During warm-up, step k (from 0) has the rate lr (k
/// + 1) / warmup_steps, or lr k / warmup_steps if warm-up begins at zero. After it the rate stays
/// constant, or falls to min_lr at total_steps along a line or half a cosine. A Change replaces lr
/// from its step on and alters nothing else.
struct LearningRate {
  enum class Kind { constant, linear, cosine };
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
  Warmup warmup = Warmup::above_zero;
  std::vector<Change> changes = {};  // In ascending order of their steps.

  double at(std::int64_t step) const;
  /// Returns the highest rate of steps 0 to `step`.
  double highest_until(std::int64_t step) const;
};

}  // namespace troupe::models
