#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// Parses the table of torch.distributed.pipelining: one row per device, one cell per action. Drops
/// empty cells. Drops SEND and RECV cells after matching each with its peer and its pass. Derives
/// stages, micro-batches and routes from the cells. Errors begin with "row:cell: ".
Result<Schedule> parse_csv(std::string_view text, std::string_view name);

/// Writes that table, without times. Omits `O` because torch steps the optimizer outside the
/// schedule. Returns an error for actions that torch cannot express (R, ', ~, A between passes).
Result<std::string> to_csv(const Schedule& schedule);

}  // namespace troupe::schedules
