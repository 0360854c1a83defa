#include "actors/lead/loss.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/units.h"

namespace troupe::actors {

void Loss::notice(caf_shim::TimePoint now, std::int64_t after, const std::string& why) {
  if (!noticed_) {
    noticed_ = now;
    why_ = why;
    after_ = 0;
  }
  after_ = std::max(after_, after);
}

std::optional<Value> Loss::made_good(Value event, caf_shim::TimePoint now, std::int64_t step) {
  if (!noticed_ || step <= after_) return {};
  const auto noticed = *std::exchange(noticed_, {});
  const auto together = assembled_.nodes + assembled_.prepare + assembled_.load;
  event.set("why", why_);
  event.set("from", assembled_.from_memory ? "memory" : "checkpoint");
  event.set("step", assembled_.step);
  event.set("redone", after_ - assembled_.step);
  event.set("seconds", in_seconds(now - noticed));
  event.set("freeze", in_seconds(over_ - noticed));
  event.set("nodes", in_seconds(assembled_.nodes));
  event.set("prepare", in_seconds(assembled_.prepare));
  event.set("load", in_seconds(assembled_.load));
  event.set("redo", in_seconds(now - over_ - together));
  return event;
}

}  // namespace troupe::actors
