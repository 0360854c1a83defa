#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// What a schedule may be at most, wherever it comes from.
inline constexpr int max_stages = 4096;
inline constexpr int max_micro_batches = 1 << 22;
inline constexpr std::size_t max_actions = std::size_t{16} << 20;

/// The canonical text: equal schedules have equal texts, and parse_schedule reads it back.
///
///     sched 1
///     name 1f1b
///     devices 2 stages 2 microbatches 2
///     route 0: 0 1
///     d0: 0F0 0F1 0B0 0B1
///     d1: 1F0 1B0 1F1 1B1
///
/// With several routes micro-batch m takes route m modulo their number, unless a line such as
/// `cycle: 0 0 1` behind the routes says otherwise.
std::string to_text(const Schedule& schedule);

/// Reads the canonical text and what people write instead: `#` comments, blank lines, ranges
/// `0F[0..3]`, `0B[3..0:-1]` (both ends belong to it), and loops `{0F1 0B0}*3:1`, whose numbers are
/// those of the first round and grow by the stride (1 if none is said) each round. Any text gives
/// a schedule whose numbers are in range, or an error that begins with "line:column: ".
Result<Schedule> parse_schedule(std::string_view text);

/// What the numbers of a lane must stay below.
struct LaneBounds {
  int stages = max_stages;
  int micro_batches = max_micro_batches;
};

/// One lane in the same notation, without the "d0:".
Result<Lane> parse_lane(std::string_view text, LaneBounds bounds = {});

/// Whether a text can be a schedule's name: one word of printable ASCII without '#'.
bool is_schedule_name(std::string_view name);

}  // namespace troupe::schedules
