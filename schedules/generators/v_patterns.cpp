#include <algorithm>

#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"
#include "schedules/generators/retime.h"
#include "schedules/generators/slots.h"

namespace troupe::schedules {
namespace {

/// The slots of micro-batch 0 on a device; each later micro-batch comes `period` slots later. A
/// device runs two F, two I and two W in a period.
struct Pattern {
  std::int64_t low_forward;
  std::int64_t high_forward;
  std::int64_t high_input;
  std::int64_t low_input;
};
constexpr std::int64_t period = 6;

Pattern half_pattern(std::int64_t device, std::int64_t devices) {
  const std::int64_t shift = devices % 2 == 0 ? 3 : 0;  // Otherwise I and F share a slot.
  return {2 * device, 3 * devices - 2 - device, 3 * devices - 1 + shift + 2 * device,
          6 * devices - 2 + shift - device};
}

Pattern least_pattern(std::int64_t device, std::int64_t devices) {
  const std::int64_t shift = devices % 3 == 0 ? 2 : 0;
  return {device, 2 * devices - 1 - device, 2 * devices + shift + device,
          4 * devices + shift - 1 - device};
}

Schedule play(std::string name, PipelineShape shape,
              Pattern (*pattern)(std::int64_t, std::int64_t)) {
  const int devices = shape.devices();
  Schedule schedule = empty_schedule(std::move(name), shape, {snaked(shape.stages, devices)});
  for (int device = 0; device < devices; ++device) {
    const auto [low_forward, high_forward, high_input, low_input] = pattern(device, devices);
    const int low = device;
    const int high = shape.stages - 1 - device;
    Slots slots;
    for (int m = 0; m < shape.micro_batches; ++m) {
      slots.place(low_forward + period * m, forward(low, m));
      slots.place(high_forward + period * m, forward(high, m));
      slots.place(high_input + period * m, backward_input(high, m));
      slots.place(low_input + period * m, backward_input(low, m));
    }
    schedule.lanes[device] = std::move(slots).lane_with_weights();
  }
  // Re-timing closes the gaps before and after the steady state of the pattern.
  RetimeSettings settings;
  settings.stages.resize(shape.stages);
  const auto peaks = peak_stash(schedule, settings);
  settings.caps.assign(peaks.size(), *std::max_element(peaks.begin(), peaks.end()));
  settings.preference = Preference::as_listed;
  Schedule retimed = retime(schedule, settings).value();
  retimed.name = schedule.name;
  return retimed;
}

}  // namespace

Schedule v_half(PipelineShape shape) { return play("v-half", shape, half_pattern); }

Schedule v_min(PipelineShape shape) { return play("v-min", shape, least_pattern); }

}  // namespace troupe::schedules
