#include "simulation/clock.h"

#include <algorithm>
#include <utility>

namespace troupe::simulation {

void Clock::at(Time time, std::function<void()> event) {
  events_.push({std::max(time, now_), asked_++, std::move(event)});
}

bool Clock::step() {
  if (events_.empty()) return false;
  const auto happen = std::move(const_cast<Event&>(events_.top()).happen);
  now_ = events_.top().time;
  events_.pop();
  happen();
  return true;
}

}  // namespace troupe::simulation
