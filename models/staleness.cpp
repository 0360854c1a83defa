#include "models/staleness.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace troupe::models {

bool mends_gradients(const StalenessOptions& staleness) {
  return measures_gaps(staleness) || staleness.delay_compensation > 0;
}

bool measures_gaps(const StalenessOptions& staleness) {
  return staleness.gap_penalty != StalenessOptions::GapPenalty::none ||
         staleness.gap_factor != StalenessOptions::GapFactor::none;
}

bool divides_by_gap_factor(const StalenessOptions& staleness) {
  return staleness.gap_factor == StalenessOptions::GapFactor::max;
}

bool looks_ahead(const StalenessOptions& staleness) {
  return staleness.nag && staleness.predict != StalenessOptions::Predict::none;
}

int delay_of(int m, int depth, int step_every) {
  return m / step_every - std::max(0, m - depth) / step_every;
}

int virtual_depth(int depth, int deepest, int cap) {
  const int stages = deepest + 1;
  return std::max(0, std::min(stages, cap - 1) - (stages - depth));
}

double fractional_power(double base, double exponent) {
  assert(base > 0 && 0 <= exponent && exponent <= 1);
  if (exponent == 1) return base;
  double power = 1;
  for (double root = std::sqrt(base); exponent > 0; root = std::sqrt(root)) {
    exponent *= 2;
    if (exponent < 1) continue;
    power *= root;
    exponent -= 1;
  }
  return power;
}

double late_rate(const LearningRate& rate, const Lateness& lateness, std::int64_t step) {
  const auto anneal = lateness.staleness.anneal_steps;
  const auto late_steps = step - lateness.staleness.synchronous_steps;
  if (late_steps < 0 || late_steps >= anneal || lateness.delay <= 1) return rate.at(step);
  const double left = 1 - static_cast<double>(late_steps) / static_cast<double>(anneal);
  return rate.at(step) / fractional_power(lateness.delay, left);
}

double clip_norm_of(const StalenessOptions& staleness, double clip_norm, std::int64_t parameters,
                    std::int64_t of_all_stages) {
  switch (staleness.clip) {
    case StalenessOptions::Clip::local:
      return clip_norm;
    case StalenessOptions::Clip::local_sqrt_share:
      return clip_norm *
             std::sqrt(static_cast<double>(parameters) / static_cast<double>(of_all_stages));
  }
  return clip_norm;
}

}  // namespace troupe::models
