#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "core/value.h"

namespace troupe::actors {

/// A recovery: it lasts from the moment at which a loss is noticed until all lost steps are done
/// again, and one more. Further losses in that time belong to it.
class Loss {
 public:
  /// `after` is the number of steps that were done.
  void notice(caf_shim::TimePoint now, std::int64_t after, const std::string& why);
  /// Called when all players of the old attempt have ended.
  void over(caf_shim::TimePoint now) { over_ = now; }
  void assembled(const Assembled& assembled) { assembled_ = assembled; }

  /// Once the recovery is complete, returns `event` with the fields of run.recovered, and then
  /// nothing until the next loss.
  std::optional<Value> made_good(Value event, caf_shim::TimePoint now, std::int64_t step);

 private:
  std::optional<caf_shim::TimePoint> noticed_;
  std::int64_t after_ = 0;
  caf_shim::TimePoint over_;
  Assembled assembled_;
  std::string why_;
};

}  // namespace troupe::actors
