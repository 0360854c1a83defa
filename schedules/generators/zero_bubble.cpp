#include <algorithm>

#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"

namespace troupe::schedules {
namespace {

/// Builds the lane of one stage: `ahead` forward passes, then I and F in turn. A W runs if the lane
/// would otherwise keep more than `cap` micro-batches. After the last F, a W also runs if the
/// device has time for it at its distance from the end.
Lane play(int stage, int micro_batches, int ahead, int cap) {
  Lane lane;
  int forwards = 0;
  int weights = 0;
  const auto play_forward = [&] { lane.push_back(forward(stage, forwards++)); };
  const auto play_weight = [&] { lane.push_back(backward_weight(stage, weights++)); };
  const auto is_full = [&] { return forwards - weights == cap; };

  while (forwards < ahead) play_forward();
  for (int m = 0; m < micro_batches; ++m) {
    lane.push_back(backward_input(stage, m));
    if (forwards < micro_batches) {
      if (is_full()) play_weight();
      play_forward();
    } else if (is_full() || m - weights >= stage) {
      play_weight();
    }
  }
  while (weights < micro_batches) play_weight();
  return lane;
}

}  // namespace

Schedule zero_bubble_h1(PipelineShape shape) {
  const int devices = shape.devices();
  Schedule schedule = empty_schedule("zb-h1", shape, {looped(shape.stages, devices)});
  for (int stage = 0; stage < devices; ++stage)
    schedule.lanes[stage] =
        play(stage, shape.micro_batches, std::min(shape.micro_batches, devices - stage), devices);
  return schedule;
}

Schedule zero_bubble_h2(PipelineShape shape) {
  const int devices = shape.devices();
  Schedule schedule = empty_schedule("zb-h2", shape, {looped(shape.stages, devices)});
  for (int stage = 0; stage < devices; ++stage)
    schedule.lanes[stage] =
        play(stage, shape.micro_batches, std::min(shape.micro_batches, 2 * (devices - stage) - 1),
             2 * devices - 1);
  return schedule;
}

}  // namespace troupe::schedules
