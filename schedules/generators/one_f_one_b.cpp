#include <algorithm>
#include <cassert>

#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"

namespace troupe::schedules {

Schedule with_credits(std::string name, int micro_batches, const std::vector<int>& credits) {
  assert(!credits.empty() && credits.back() >= 1 &&
         std::ranges::is_sorted(credits, std::ranges::greater{}));
  const PipelineShape shape{static_cast<int>(credits.size()), micro_batches, 1};
  Schedule schedule = empty_schedule(std::move(name), shape, {looped(shape.stages, shape.stages)});
  for (int stage = 0; stage < shape.stages; ++stage) {
    const int ahead = std::min(credits[stage], micro_batches) - 1;
    Lane& lane = schedule.lanes[stage];
    for (int m = 0; m < micro_batches + ahead; ++m) {
      if (m < micro_batches) lane.push_back(forward(stage, m));
      if (m >= ahead) lane.push_back(backward(stage, m - ahead));
    }
  }
  return schedule;
}

std::vector<int> capped_credits(int stages, int cap) {
  const int lowered = std::max(0, stages - cap);
  std::vector<int> credits(stages);
  for (int stage = 0; stage < stages; ++stage)
    credits[stage] = std::max(1, stages - stage - lowered);
  return credits;
}

Schedule one_f_one_b(PipelineShape shape) {
  return with_credits("1f1b", shape.micro_batches, capped_credits(shape.stages, shape.stages));
}

Schedule one_f_one_b_eager(PipelineShape shape) {
  std::vector<int> credits(shape.stages);
  for (int stage = 0; stage < shape.stages; ++stage)
    credits[stage] = 2 * (shape.stages - 1 - stage) + 1;
  return with_credits("1f1b-eager", shape.micro_batches, credits);
}

}  // namespace troupe::schedules
