#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// Upper bounds for every schedule, from whatever source.
inline constexpr int max_stages = 4096;
inline constexpr int max_micro_batches = 1 << 22;
inline constexpr std::size_t max_actions = std::size_t{16} << 20;

/// Returns the canonical text, equal for equal schedules. parse_schedule() reads it back.
///
///     sched 1
///     name 1f1b
///     devices 2 stages 2 microbatches 2
///     route 0: 0 1
///     d0: 0F0 0F1 0B0 0B1
///     d1: 1F0 1B0 1F1 1B1
///
/// With several routes, micro-batch m takes route m modulo the number of routes, unless a line such
/// as `cycle: 0 0 1` after the routes says otherwise.
std::string to_text(const Schedule& schedule);

/// Parses the canonical text or its hand-written form, which may contain `#` comments, blank lines,
/// ranges `0F[0..3]`, `0B[3..0:-1]` (both ends included), and loops `{0F1 0B0}*3:1`. Each round of
/// a loop adds the stride (default 1) to the numbers. Returns a schedule whose numbers are in
/// range, or an error that begins with "line:column: ".
Result<Schedule> parse_schedule(std::string_view text);

/// Exclusive upper bounds for the numbers of a lane.
struct LaneBounds {
  int stages = max_stages;
  int micro_batches = max_micro_batches;
};

/// Parses one lane in the notation above, without the "d0:".
Result<Lane> parse_lane(std::string_view text, LaneBounds bounds = {});

/// Returns whether a text can name a schedule: one word of printable ASCII without '#'.
bool is_schedule_name(std::string_view name);

}  // namespace troupe::schedules
