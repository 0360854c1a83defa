#pragma once

#include <cstdint>
#include <vector>

namespace troupe::models {

/// The learning rate as a function of the step. With warm-up the rate of 0-based step k is lr (k +
/// 1) / warmup_steps while k < warmup_steps; from there it stays (constant), or goes to min_lr at
/// total_steps by a line or half a cosine. A warm-up from zero has rate lr k / warmup_steps
/// instead. A change puts another height in the place of lr from its step on; nothing else changes.
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
  std::vector<Change> changes = {};  // In the order of their steps.

  double at(std::int64_t step) const;
  /// The highest rate of steps 0 to `step`.
  double highest_until(std::int64_t step) const;
};

}  // namespace troupe::models
