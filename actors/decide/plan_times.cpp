#include "actors/decide/plan_times.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace troupe::actors {
namespace {

// Times that differ by less are equal but for their rounding.
constexpr double equal_times = 1e-3;

std::ptrdiff_t count_since(const std::vector<Time>& times, Time since) {
  return std::ranges::count_if(times, [&](Time at) { return at >= since; });
}

}  // namespace

void PlanTimes::begin(const std::string& plan_and_nodes) {
  ignored_ = 0;
  if (std::exchange(plan_and_nodes_, plan_and_nodes) == plan_and_nodes) return;
  steps_ = 0;
  counted_ = 0;
  seconds_ = computing_ = LastNumbers(2 * RunningMedian::window);
}

void PlanTimes::add(double seconds, std::optional<double> computing) {
  if (ignored_ < limits_.warm_up) {
    ++ignored_;
    return;
  }
  ++steps_;
  counted_ += seconds;
  seconds_.add(seconds);
  if (computing) computing_.add(*computing);
}

std::optional<PlanTimes::Figures> PlanTimes::measured() const {
  if (steps_ < limits_.least_steps || counted_ < limits_.least_seconds) return {};
  Figures figures{.step = seconds_.median(), .spread = seconds_.spread()};
  if (computing_.count() > 0) figures.computing = computing_.median();
  return figures;
}

void PlanTimes::note(const std::string& plan, Time now) {
  if (const auto figures = measured()) known_[plan] = {figures->step, now};
}

bool PlanTimes::knows_plans(Time now) const {
  return std::ranges::any_of(
      known_, [&](const auto& entry) { return now - entry.second.noted <= limits_.hold; });
}

void PlanTimes::changed_over(Basis basis, Time now) {
  const auto is_old = [&](Time at) { return now - at > limits_.hold; };
  std::erase_if(tries_, is_old);
  std::erase_if(changes_, is_old);
  if (basis == Basis::forecast) tries_.push_back(now);
  changes_.push_back(now);
}

bool PlanTimes::may_hurry(Time now) const {
  return count_since(changes_, now - limits_.hold) < limits_.most_hasty;
}

bool PlanTimes::is_off(double expected) const {
  const auto figures = measured();
  return figures && expected > 0 && std::abs(figures->step / expected - 1) > limits_.off;
}

std::optional<PlanTimes::Choice> PlanTimes::better(const std::vector<ForecastPlan>& plans,
                                                   const ForecastPlan& in_force, Time now) const {
  const auto figures = measured();
  if (!figures || in_force.seconds <= 0) return {};
  std::map<decltype(in_force.layout()), double> factors;
  std::map<std::string, double> times;
  for (const auto& plan : plans)
    if (const auto known = known_.find(plan.name);
        known != known_.end() && now - known->second.noted <= limits_.hold && plan.seconds > 0) {
      times[plan.name] = known->second.step;
      factors[plan.layout()] = known->second.step / plan.seconds;
    }
  const double factor = figures->step / in_force.seconds;
  factors[in_force.layout()] = factor;
  const bool may_try = count_since(tries_, now - limits_.hold) < limits_.most_tries;
  const double noise = limits_.spreads * figures->spread;
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto& plan = plans[i];
    if (plan.name == in_force.name) continue;
    const auto known = times.find(plan.name);
    Choice choice{.plan = i};
    if (known != times.end()) {
      choice.basis = Basis::measurement;
      choice.seconds = known->second;
    } else if (const auto same = factors.find(plan.layout()); same != factors.end()) {
      choice.seconds = plan.seconds * same->second;
    } else {
      // Links slow down several devices, and not one alone.
      choice.seconds = plan.seconds * (plan.devices == 1 && in_force.devices > 1 ? 1 : factor);
    }
    if (choice.basis == Basis::forecast && !may_try) continue;
    const double least =
        choice.basis == Basis::measurement ? limits_.least_gain : limits_.least_new_gain;
    if (choice.seconds > figures->step * (1 - std::max(least, noise))) continue;
    choices.push_back(choice);
  }
  if (choices.empty()) return {};
  const double shortest = std::ranges::min_element(choices, {}, &Choice::seconds)->seconds;
  const auto rank = [&](const Choice& choice) {
    return std::tuple(choice.seconds > shortest * (1 + limits_.alike), plans[choice.plan].layout());
  };
  const auto fastest = *std::ranges::min_element(
      choices, {}, [&](const Choice& choice) { return std::tuple(rank(choice), choice.seconds); });
  // No forecast knows that what fits into caches is faster.
  std::erase_if(choices, [&](const Choice& choice) {
    return rank(choice) != rank(fastest) || choice.seconds > fastest.seconds * (1 + equal_times);
  });
  return *std::ranges::min_element(choices, {},
                                   [&](const Choice& choice) { return plans[choice.plan].memory; });
}

}  // namespace troupe::actors
