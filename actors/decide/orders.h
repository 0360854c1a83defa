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
/// Begin no more rounds, so that the run comes to a boundary, or begin rounds again.
struct HoldRounds {
  bool is_held = true;
};
// Answers to AtBoundary, for the boundary after `step`.

struct PlayOn {
  std::int64_t step = 0;
};
/// Put the state together and save it, unless it is saved already. The answer is Collected.
struct Collect {
  std::int64_t step = 0;
};
/// Make all changes that wait. The answer is ChangesMade.
struct ApplyChanges {
  std::int64_t step = 0;
};

/// Leave out the samples of this step, and write that down. The answer is StepSkipped.
struct SkipStep {
  std::int64_t step = 0;
};

struct Warn {
  std::string text;
};
constexpr int exit_too_few = 6;
/// The run ends.
struct End {
  enum class How : std::uint8_t { done, stopped, failed };

  How how = How::failed;
  int code = 0;     // The exit code of a run that failed.
  std::string why;  // May be empty unless it failed.
};

using Order = std::variant<SetTimer, MakePlan, Prepare, Load, Begin, EndAttempt, HoldRounds, PlayOn,
                           Collect, ApplyChanges, SkipStep, Warn, End>;

}  // namespace troupe::actors::decide
