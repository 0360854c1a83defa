#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/assembled.h"
#include "actors/rt.h"
#include "core/value.h"

namespace troupe::actors {

/// A recovery: it lasts from the moment at which a loss is noticed until all lost steps are done
/// again, and one more. Further losses in that time belong to it.
class Loss {
 public:
  /// `after` is the number of steps that were done.
  void notice(rt::TimePoint now, std::int64_t after, const std::string& why);
  /// Called when all players of the old attempt have ended.
  void over(rt::TimePoint now) { over_ = now; }
  void assembled(const Assembled& assembled) { assembled_ = assembled; }

  /// Once the recovery is complete, returns `event` with the fields of run.recovered, and then
  /// nothing until the next loss.
  std::optional<Value> made_good(Value event, rt::TimePoint now, std::int64_t step);

 private:
  std::optional<rt::TimePoint> noticed_;
  std::int64_t after_ = 0;
  rt::TimePoint over_;
  Assembled assembled_;
  std::string why_;
};

}  // namespace troupe::actors
