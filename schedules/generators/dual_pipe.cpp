#include "schedules/check/leg.h"
#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"

namespace troupe::schedules {
namespace {

/// Lists two passes as one overlapping group.
template <class First, class Second>
void overlap(Lane& lane, First first, Second second) {
  first();
  lane.back().flags |= Action::with_next;
  second();
}

/// Returns the lane of a device of the V. Micro-batches reach its low leg first.
Lane play(int device, int devices, int micro_batches) {
  Lane lane;
  Waiting waiting;
  Leg low(device, lane, waiting);
  Leg high(2 * devices - 1 - device, lane, waiting);
  const int to_turn = devices - 1 - device;

  for (int k = 0; k < 2 * to_turn; ++k) low.forward();
  for (int k = 0; k <= device; ++k) {
    low.forward();
    high.forward();
  }
  for (int k = 0; k < to_turn; ++k) {
    high.input();
    list_oldest(waiting, lane);
    high.forward();
  }
  for (int k = 0; k < micro_batches - 2 * devices + device + 1; ++k) {
    // At the turn, the first gradient needs the loss of the forward pass right before it.
    if (k == 0 && to_turn == 0) {
      low.forward();
      high.backward();
    } else {
      overlap(
          lane, [&] { low.forward(); }, [&] { high.backward(); });
    }
    overlap(
        lane, [&] { high.forward(); }, [&] { low.backward(); });
  }
  for (int k = 0; k < to_turn; ++k) {
    high.backward();
    overlap(
        lane, [&] { high.forward(); }, [&] { low.backward(); });
  }
  // From the middle on, downstream devices need input gradients sooner than this one needs weights.
  const int middle = (device + 1) / 2;
  const int high_middle = device % 2 == 0 ? middle + 1 : middle;
  for (int k = 0; k <= device; ++k) {
    k < high_middle ? high.backward() : high.input();
    k < middle ? low.backward() : low.input();
  }
  for (int k = 0; k < to_turn; ++k) {
    list_oldest(waiting, lane);
    low.input();
  }
  while (!waiting.empty()) list_oldest(waiting, lane);
  return lane;
}

}  // namespace

Schedule dual_pipe_v(PipelineShape shape) {
  const int devices = shape.devices();
  Schedule schedule = empty_schedule("dualpipev", shape, {snaked(shape.stages, devices)});
  for (int device = 0; device < devices; ++device)
    schedule.lanes[device] = play(device, devices, shape.micro_batches);
  return schedule;
}

Schedule dual_pipe(PipelineShape shape) {
  const int devices = shape.devices();
  const Route there = looped(shape.stages, devices);
  Schedule schedule = empty_schedule("dualpipe", shape, {there, reversed(there, devices)});
  // Unfolds a V of half as many devices: its legs become the two directions. Even micro-batches
  // enter at device 0, odd ones at the other end.
  for (int device = 0; device < devices / 2; ++device) {
    Lane& lane = schedule.lanes[device];
    Lane& mirror = schedule.lanes[devices - 1 - device];
    lane = play(device, devices / 2, shape.micro_batches / 2);
    mirror = lane;
    for (std::size_t k = 0; k < lane.size(); ++k) {
      const bool is_low = lane[k].stage == device;
      lane[k].micro_batch = 2 * lane[k].micro_batch + (is_low ? 0 : 1);
      mirror[k].micro_batch = 2 * mirror[k].micro_batch + (is_low ? 1 : 0);
    }
  }
  return schedule;
}

}  // namespace troupe::schedules
