#include "apps/events/run_counters.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace troupe::apps {
namespace {

constexpr std::size_t most_recent = 64;
// A pace of fewer steps says too little.
constexpr std::size_t least_recent = 3;

std::optional<double> number_of(const Value& event, std::string_view key) {
  const Value* value = event.find(key);
  if (!value || !value->is_number() || !std::isfinite(value->number())) return {};
  return value->number();
}

}  // namespace

void Histogram::add(double seconds) {
  const auto bound = std::ranges::lower_bound(bounds, seconds);
  if (bound != bounds.end()) ++counts[static_cast<std::size_t>(bound - bounds.begin())];
  ++count;
  sum += seconds;
}

void RunCounters::add(const Value& event) {
  const std::lock_guard lock(mutex_);
  const std::string type = text_in(event, "type");
  if (type == "step") add_step(event);
  if (type == "warn") ++numbers_.warnings;
  if (type == "checkpoint.saved") {
    ++numbers_.checkpoints;
    numbers_.saved_at = number_of(event, "time");
    if (const auto seconds = number_of(event, "seconds")) numbers_.save_seconds.add(*seconds);
  }
  if (type == "plan.changed") {
    // Other nodes may wait for each other now; what is counted of others would stay for ever.
    numbers_.link_waits.clear();
    numbers_.planned_at = number_of(event, "time");
  }
  if (type == "run.recovered") {
    ++numbers_.recoveries;
    numbers_.repeated += std::max<std::int64_t>(0, integer_in(event, "redone"));
    if (const auto seconds = number_of(event, "seconds")) numbers_.recovery_seconds.add(*seconds);
  }
}

void RunCounters::add_step(const Value& event) {
  ++numbers_.steps;
  const auto seen = integer_in(event, event.find("tokens") ? "tokens" : "samples");
  const auto step = integer_in(event, "step");
  // All steps are of one size; the run may have begun at any step, or have gone back.
  if (step > 0) numbers_.seen += seen / step;
  numbers_.rate = number_of(event, "rate");
  numbers_.grad_norm = number_of(event, "grad_norm");
  numbers_.lr = number_of(event, "lr");
  numbers_.bubble = number_of(event, "bubble");
  numbers_.memory = number_of(event, "memory");
  add_waits(event);
  const auto seconds = number_of(event, "seconds");
  if (!seconds || *seconds <= 0) return;
  numbers_.step_seconds.add(*seconds);
  recent_.push_back(*seconds);
  if (recent_.size() > most_recent) recent_.pop_front();
}

void RunCounters::add_waits(const Value& event) {
  const Value* waits = event.find("waits");
  if (!waits || !waits->list()) return;
  for (const auto& wait : *waits->list()) {
    const auto seconds = number_of(wait, "seconds");
    if (!seconds) continue;
    const LinkEnds ends{text_in(wait, "from"), text_in(wait, "to")};
    numbers_.link_waits.try_emplace(ends, wait_bounds).first->second.add(*seconds);
  }
}

RunNumbers RunCounters::numbers() const {
  const std::lock_guard lock(mutex_);
  auto numbers = numbers_;
  if (recent_.size() >= least_recent) {
    std::vector<double> sorted(recent_.begin(), recent_.end());
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    numbers.pace = *middle;
  }
  return numbers;
}

}  // namespace troupe::apps
