#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"

namespace troupe::schedules {

Schedule sequential(PipelineShape shape) {
  Schedule schedule = empty_schedule("seq", shape, {looped(shape.stages, shape.devices())});
  for (int stage = 0; stage < shape.stages; ++stage)
    for (int m = 0; m < shape.micro_batches; ++m) {
      schedule.lanes[stage].push_back(forward(stage, m));
      schedule.lanes[stage].push_back(backward(stage, m));
    }
  return schedule;
}

Schedule gpipe(PipelineShape shape) {
  Schedule schedule = empty_schedule("gpipe", shape, {looped(shape.stages, shape.devices())});
  for (int stage = 0; stage < shape.stages; ++stage) {
    Lane& lane = schedule.lanes[stage];
    for (int m = 0; m < shape.micro_batches; ++m) lane.push_back(forward(stage, m));
    for (int m = 0; m < shape.micro_batches; ++m) lane.push_back(backward(stage, m));
  }
  return schedule;
}

}  // namespace troupe::schedules
