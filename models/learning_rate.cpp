#include "models/learning_rate.h"

#include <algorithm>

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

}  // namespace

double LearningRate::at(std::int64_t step) const {
  const double height = height_at(*this, step);
  if (step < warmup_steps) {
    const std::int64_t first = warmup == Warmup::above_zero ? 1 : 0;
    return height * static_cast<double>(step + first) / static_cast<double>(warmup_steps);
  }
  const double progress = step >= total_steps ? 1
                                              : static_cast<double>(step - warmup_steps) /
                                                    static_cast<double>(total_steps - warmup_steps);
  switch (kind) {
    case Kind::constant:
      return height;
    case Kind::linear:
      return min_lr + (height - min_lr) * (1 - progress);
    case Kind::cosine:
      return min_lr + (height - min_lr) * 0.5 * (1 + cosine_of_half_turns(progress));
  }
  return height;
}

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
