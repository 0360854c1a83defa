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

Value told_at(Env::WallTime now, Value event) {
  if (event.find("time")) return event;
  const auto rounded = std::chrono::floor<std::chrono::microseconds>(now);
  event.set("time", static_cast<double>(rounded.time_since_epoch().count()) / 1e6);
  return event;
}

}  // namespace troupe::apps
