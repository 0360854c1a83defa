#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/decide/events.h"
#include "actors/decide/sources.h"

/// The orders of a run's machine.
namespace troupe::actors::decide {

struct SetTimer {
  std::uint64_t timer = 0;
  Duration after{};
};
/// Make a plan for these nodes. The answer has the same number.
struct MakePlan {
  std::uint64_t number = 0;
  std::vector<Life> nodes;
};
struct Prepare {
  std::uint64_t attempt = 0;
  PlanChoice plan;
};
struct Load {
  std::uint64_t attempt = 0;
  StateSource source;
};
/// The attempt begins after `step`.
struct Begin {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
};
/// The answer is AttemptEnded.
struct EndAttempt {
  std::uint64_t attempt = 0;
};
struct Warn {
  std::string text;
};
constexpr int exit_too_few = 6;
/// The run ends.
struct End {
  int code = 0;  // The exit code.
  std::string why;
};

using Order = std::variant<SetTimer, MakePlan, Prepare, Load, Begin, EndAttempt, Warn, End>;

}  // namespace troupe::actors::decide
