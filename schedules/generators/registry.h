#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// The allowed number of stages per device (chunks) of a schedule.
enum class Chunks { one, two, several, even };

/// When a stage updates its weights: after all passes of a step, or between them.
enum class Mode { synchronous, asynchronous };

/// A schedule in the registry.
struct NamedSchedule {
  std::string_view name;
  std::string_view idea;   // One sentence.
  std::string_view needs;  // For example "even devices, even micro-batches" or "any shape".
  Mode mode;
  Chunks chunks;
  /// Returns why the shape does not fit and what to do, or nothing. Ranges are checked before.
  std::string (*objection)(PipelineShape shape);
  Schedule (*generate)(PipelineShape shape);
};

/// Returns all named schedules, in the best order for explaining them.
std::span<const NamedSchedule> named_schedules();

/// Finds a schedule by name, or returns null. "interleaved-v2" finds "interleaved", and "2bw" finds
/// "pipedream-2bw".
const NamedSchedule* find_schedule(std::string_view name);

/// Generates the passes of one step. A name may give the chunks ("interleaved-v2", "hanayo-w1"),
/// and the V schedules imply two; then `shape.chunks` may stay 1. Errors say what the schedule
/// needs and suggest the nearest shape or name.
Result<Schedule> generate(std::string_view name, PipelineShape shape);

}  // namespace troupe::schedules
