#include "schedules/generators/slots.h"

#include <algorithm>
#include <cassert>

#include "schedules/check/leg.h"

namespace troupe::schedules {

void Slots::sort() {
  std::ranges::sort(placed_, {}, &Placed::slot);
  assert(std::ranges::adjacent_find(placed_, {}, &Placed::slot) == placed_.end() &&
         "two actions want the same slot of a device");
}

Lane Slots::lane() && {
  sort();
  Lane lane;
  for (const Placed& placed : placed_) lane.push_back(placed.action);
  return lane;
}

Lane Slots::lane_with_weights() && {
  sort();
  Lane lane;
  Waiting waiting;
  std::int64_t free_slot = placed_.empty() ? 0 : placed_.front().slot;
  for (const auto& [slot, action] : placed_) {
    for (; free_slot < slot && !waiting.empty(); ++free_slot) list_oldest(waiting, lane);
    free_slot = slot + 1;
    lane.push_back(action);
    if (action.kind == Kind::backward_input)
      waiting.push_back(backward_weight(action.stage, static_cast<int>(action.micro_batch)));
  }
  while (!waiting.empty()) list_oldest(waiting, lane);
  return lane;
}

}  // namespace troupe::schedules
