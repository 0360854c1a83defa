#include <algorithm>

#include "schedules/check/leg.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"

namespace troupe::schedules {
namespace {

/// Builds the lane of a device for a step that reaches the steady state.
Lane play(int device, int devices, int micro_batches) {
  Lane lane;
  Waiting low_weights;
  Waiting high_weights;
  Leg low(device, lane, low_weights);
  Leg high(2 * devices - 1 - device, lane, high_weights);
  const auto backward = [&](Leg& leg, Waiting& weights) {
    leg.input();
    list_oldest(weights, lane);
  };

  for (int k = 0; k < 2 * (devices - device) - 1; ++k) low.forward();
  for (int k = 0; k < device; ++k) {
    high.forward();
    low.forward();
  }
  for (int k = 0; k < devices - device; ++k) {
    high.forward();
    backward(high, high_weights);
  }
  while (low.forwards() < micro_batches || high.forwards() < micro_batches) {
    if (low.forwards() < micro_batches) low.forward();
    backward(low, low_weights);
    high.forward();
    backward(high, high_weights);
  }
  for (int k = 0; k < device; ++k) {
    low.input();
    high.input();
  }
  for (int k = 0; k < devices - device; ++k) backward(low, low_weights);
  while (!high_weights.empty()) list_oldest(high_weights, lane);
  while (!low_weights.empty()) list_oldest(low_weights, lane);
  return lane;
}

}  // namespace

Schedule zero_bubble_v(PipelineShape shape) {
  const int devices = shape.devices();
  Schedule schedule = empty_schedule("zb-v", shape, {snaked(shape.stages, devices)});
  const int played = std::max(shape.micro_batches, 2 * devices - 1);
  for (int device = 0; device < devices; ++device) {
    Lane lane = play(device, devices, played);
    // A valid schedule stays valid without some of its micro-batches.
    std::erase_if(lane, [&](Action action) {
      return static_cast<int>(action.micro_batch) >= shape.micro_batches;
    });
    schedule.lanes[device] = std::move(lane);
  }
  return schedule;
}

}  // namespace troupe::schedules
