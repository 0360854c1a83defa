#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/assembled.h"
#include "actors/rt.h"
#include "core/value.h"

namespace troupe::actors {

/// What is being made good: from when a loss is noticed until all that was done before it is done
/// again, and a step more. Losses that come meanwhile are part of it.
class Loss {
 public:
  /// After so many steps.
  void notice(rt::TimePoint now, std::int64_t after, const std::string& why);
  /// All of the attempt before were gone.
  void over(rt::TimePoint now) { over_ = now; }
  void assembled(const Assembled& assembled) { assembled_ = assembled; }

  /// Once it is made good, with so many steps done: what run.recovered says beside the run. Told
  /// once.
  std::optional<Value> made_good(Value event, rt::TimePoint now, std::int64_t step);

 private:
  std::optional<rt::TimePoint> noticed_;
  std::int64_t after_ = 0;
  rt::TimePoint over_;
  Assembled assembled_;
  std::string why_;
};

}  // namespace troupe::actors
