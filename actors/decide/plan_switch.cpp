#include "actors/decide/plan_switch.h"

#include <algorithm>

#include "core/units.h"

namespace troupe::actors::decide {
namespace {

using Hours = std::chrono::duration<double, std::ratio<3600>>;

constexpr std::size_t most_changes = 1024;
constexpr Duration remembered = std::chrono::hours(1);
// The prior for a new cluster: one change in the hour before.
constexpr double prior_changes = 1;

}  // namespace

void NodeChanges::add(Time now) {
  times_.push_back(now);
  if (times_.size() > most_changes) times_.erase(times_.begin());
}

Duration NodeChanges::time_to_next(Time now) const {
  const auto recent =
      std::ranges::count_if(times_, [&](Time change) { return now - change <= remembered; });
  const double hours = Hours(std::min<Duration>(now - begun_, remembered)).count();
  return std::chrono::duration_cast<Duration>(
      Hours((hours + 1) / (static_cast<double>(recent) + prior_changes)));
}

bool pays(const PlanSwitch& plan_switch, const SwitchLimits& limits) {
  if (plan_switch.saves_since_last < limits.saves_between) return false;
  if (plan_switch.better_rate <= 0) return false;
  const double gain = 1 - plan_switch.rate / plan_switch.better_rate;
  if (gain < limits.least_gain) return false;
  const double left = static_cast<double>(plan_switch.steps_left) / plan_switch.better_rate;
  const double change = in_seconds(plan_switch.time_to_next_change);
  return gain * std::min(left, change) > in_seconds(limits.cost);
}

}  // namespace troupe::actors::decide
