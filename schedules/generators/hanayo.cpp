#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"
#include "schedules/generators/slots.h"

namespace troupe::schedules {

Schedule hanayo(PipelineShape shape) {
  const int devices = shape.devices();
  Schedule schedule = empty_schedule("hanayo-w" + std::to_string(shape.chunks / 2), shape,
                                     {snaked(shape.stages, devices)});
  std::vector<Slots> slots(devices);
  for (int m = 0; m < shape.micro_batches; ++m) {
    // A unit has as many micro-batches as devices. A device's chunks lie an odd number of slots
    // apart.
    const std::int64_t begin = std::int64_t{m / devices} * 2 * shape.stages + m % devices * 2;
    for (int stage = 0; stage < shape.stages; ++stage) {
      Slots& device = slots[schedule.routes[0][stage]];
      device.place(begin + stage, forward(stage, m));
      device.place(begin + 2 * shape.stages - 1 - stage, backward(stage, m));
    }
  }
  for (int device = 0; device < devices; ++device)
    schedule.lanes[device] = std::move(slots[device]).lane();
  return schedule;
}

}  // namespace troupe::schedules
