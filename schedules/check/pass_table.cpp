#include "schedules/check/pass_table.h"

#include <algorithm>

namespace troupe::schedules {

PassTable::PassTable(const Schedule& schedule)
    : schedule_(schedule), cells_(std::size_t(schedule.stages) * schedule.micro_batches) {
  std::uint32_t number = 0;
  for (const Lane& lane : schedule.lanes) {
    begin_.push_back(number);
    for (const Action action : lane) {
      if (has_micro_batch(action.kind)) {
        Cell& cell = cells_[this->cell(action.stage, action.micro_batch)];
        if (action.kind == Kind::forward) cell.forward = number;
        if (action.kind == Kind::recompute) cell.recompute = number;
        if (gives_input_gradient(action.kind)) cell.input = number;
        if (gives_weight_gradient(action.kind)) cell.weight = number;
      }
      ++number;
    }
  }
  begin_.push_back(number);
}

int PassTable::device(std::uint32_t number) const {
  return static_cast<int>(std::ranges::upper_bound(begin_, number) - begin_.begin()) - 1;
}

std::string PassTable::describe(std::uint32_t number) const {
  return to_string(action(number)) + " on device " + std::to_string(device(number));
}

}  // namespace troupe::schedules
