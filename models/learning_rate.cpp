#include "models/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

/// Returns cos(pi f) for f in [0, 1] by its series. The C library's bits differ between processors.
double cosine_of_half_turns(double f) {
  if (f > 0.5) return -cosine_of_half_turns(1 - f);
  const double x = 3.141592653589793 * f;
  double sum = 0;
  for (int k = 12; k >= 1; --k) sum = (1 + sum) * -x * x / ((2.0 * k - 1) * (2.0 * k));
  return 1 + sum;
}

/// Returns the peak rate that holds at a step.
double height_at(const LearningRate& rate, std::int64_t step) {
  double height = rate.lr;
  for (const auto& change : rate.changes)
    if (change.from <= step) height = change.lr;
  return height;
}

/// Returns the step at which the rate begins to fall.
std::int64_t fall_begins(const LearningRate& rate) {
  if (rate.kind != LearningRate::Kind::wsd) return rate.warmup_steps;
  return std::max(rate.warmup_steps, rate.total_steps - rate.steps_of_decay());
}

/// Returns the share of the way from lr to min_lr that remains, after a part of the fall.
double left_after(const LearningRate& rate, double progress) {
  switch (rate.kind) {
    case LearningRate::Kind::constant:
      return 1;
    case LearningRate::Kind::linear:
      return 1 - progress;
    case LearningRate::Kind::cosine:
      return 0.5 * (1 + cosine_of_half_turns(progress));
    case LearningRate::Kind::wsd:
      return rate.decay == LearningRate::Decay::linear ? 1 - progress : 1 - std::sqrt(progress);
  }
  return 1;
}

/// Returns the rate of a step before the group's factor.
double common_rate(const LearningRate& rate, std::int64_t step) {
  const double height = height_at(rate, step);
  if (step < rate.warmup_steps) {
    const std::int64_t first = rate.warmup == LearningRate::Warmup::above_zero ? 1 : 0;
    return height * static_cast<double>(step + first) / static_cast<double>(rate.warmup_steps);
  }
  const std::int64_t begin = fall_begins(rate);
  if (rate.kind == LearningRate::Kind::constant ||
      (rate.kind == LearningRate::Kind::wsd && step <= begin && step < rate.total_steps))
    return height;
  const double progress =
      step >= rate.total_steps
          ? 1
          : static_cast<double>(step - begin) / static_cast<double>(rate.total_steps - begin);
  return rate.min_lr + (height - rate.min_lr) * left_after(rate, progress);
}

}  // namespace

std::int64_t LearningRate::steps_of_decay() const {
  return decay_steps.value_or(std::max<std::int64_t>(1, total_steps / 10));
}

double LearningRate::at(std::int64_t step) const { return factor * common_rate(*this, step); }

double LearningRate::highest_until(std::int64_t step) const {
  // The rate is monotonic between these ends, so one of them has the maximum.
  std::vector<std::int64_t> ends = {0, step, std::min(step, warmup_steps),
                                    std::clamp<std::int64_t>(warmup_steps - 1, 0, step)};
  for (const auto& change : changes)
    if (change.from > 0 && change.from <= step)
      ends.insert(ends.end(), {change.from - 1, change.from});
  double highest = 0;
  for (const auto end : ends) highest = std::max(highest, at(end));
  return highest;
}

}  // namespace troupe::models
