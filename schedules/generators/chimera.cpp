#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"
#include "schedules/generators/slots.h"

namespace troupe::schedules {

Schedule chimera(PipelineShape shape) {
  const int devices = shape.devices();
  const Route there = looped(shape.stages, devices);
  Schedule schedule = empty_schedule("chimera", shape, {there, reversed(there, devices)});
  std::vector<Slots> slots(devices);
  for (int m = 0; m < shape.micro_batches; ++m) {
    // A unit has a micro-batch per device. The two directions use slots of different parity.
    const std::int64_t begin = std::int64_t{m / devices} * 2 * devices + m % devices / 2 * 2;
    for (int stage = 0; stage < shape.stages; ++stage) {
      Slots& device = slots[schedule.route(static_cast<std::uint32_t>(m))[stage]];
      device.place(begin + stage, forward(stage, m));
      device.place(begin + 2 * devices - 1 - stage, backward(stage, m));
    }
  }
  for (int device = 0; device < devices; ++device)
    schedule.lanes[device] = std::move(slots[device]).lane();
  return schedule;
}

}  // namespace troupe::schedules
