#pragma once

#include <span>
#include <string_view>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// How many stages a device may hold in a schedule of this name.
enum class Chunks { one, two, several, even };

/// When a stage takes new weights: once all passes of a step are done, or amid them.
enum class Mode { synchronous, asynchronous };

/// A schedule that goes by a name.
struct NamedSchedule {
  std::string_view name;
  std::string_view idea;   // One sentence.
  std::string_view needs;  // "even devices, even micro-batches"; "any shape".
  Mode mode;
  Chunks chunks;
  /// What the shape lacks, with what to do, or an empty text. The ranges have been checked before.
  std::string (*objection)(PipelineShape shape);
  Schedule (*generate)(PipelineShape shape);
};

/// All of them, in the order in which they are best explained.
std::span<const NamedSchedule> named_schedules();

/// Null if there is none of that name; "interleaved-v2" is found as "interleaved", "2bw" as
/// "pipedream-2bw".
const NamedSchedule* find_schedule(std::string_view name);

/// The passes of one step. A name may say the chunks ("interleaved-v2", "hanayo-w1"), and the V
/// schedules have two without being told; `shape.chunks` may be left at 1 then. Errors say what the
/// schedule needs and the nearest shape or name.
Result<Schedule> generate(std::string_view name, PipelineShape shape);

}  // namespace troupe::schedules
