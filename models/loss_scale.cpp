#include "models/loss_scale.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace troupe::models {

double LossScale::factor() const { return std::ldexp(1.0, power); }

LossScale LossScaling::after_step(LossScale last) const {
  if (!is_on() || ++last.steady_steps < growth_interval) return last;
  last.power = std::min(last.power + 1, most_power);
  last.steady_steps = 0;
  return last;
}

LossScale LossScaling::after_overflow(LossScale last) const {
  assert(can_skip(last));
  --last.power;
  last.steady_steps = 0;
  ++last.skipped_steps;
  return last;
}

}  // namespace troupe::models
