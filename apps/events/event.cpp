#include "apps/events/event.h"

#include <chrono>
#include <utility>

namespace troupe::apps {

Value event(transport::MessageName type, const std::string& run) {
  Value value;
  value.set("type", type.text());
  value.set("run", run);
  return value;
}

Value told_now(Value event) {
  if (event.find("time")) return event;
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  event.set("time", static_cast<double>(now.time_since_epoch().count()) / 1e6);
  return event;
}

}  // namespace troupe::apps
