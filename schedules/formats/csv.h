#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "schedules/schedule.h"

namespace troupe::schedules {

/// The table that torch.distributed.pipelining writes: a row per device, a cell per action. Empty
/// cells are dropped, and so are SEND and RECV cells once each is seen to have its other end and
/// its pass. Stages, micro-batches and routes follow from the cells. Errors begin with "row:cell:
/// ".
Result<Schedule> parse_csv(std::string_view text, std::string_view name);

/// The same table without times. `O` is left out, for torch takes the optimizer step outside of a
/// schedule; what torch has no word for (R, ', ~, A amid the passes) is an error.
Result<std::string> to_csv(const Schedule& schedule);

}  // namespace troupe::schedules
