#include <algorithm>

#include "schedules/generators/generators.h"
#include "schedules/generators/placement.h"

namespace troupe::schedules {
namespace {

/// Returns the begin of each group of micro-batches, then the end. Group sizes differ by at most
/// one and are at least the number of devices if the step has that many micro-batches.
std::vector<int> group_borders(PipelineShape shape) {
  const int groups = std::max(1, shape.micro_batches / shape.devices());
  std::vector<int> borders = {0};
  for (int group = 0; group < groups; ++group)
    borders.push_back(borders.back() + shape.micro_batches / groups +
                      (group < shape.micro_batches % groups ? 1 : 0));
  return borders;
}

struct Passes {
  Lane forwards;
  Lane backwards;
};

/// Returns the passes of a device, each kind in the order in which the groups visit its chunks.
Passes passes(PipelineShape shape, int device, const std::vector<int>& borders) {
  Passes passes;
  for (std::size_t group = 1; group < borders.size(); ++group)
    for (int chunk = 0; chunk < shape.chunks; ++chunk)
      for (int m = borders[group - 1]; m < borders[group]; ++m) {
        const int other_end = shape.chunks - 1 - chunk;
        passes.forwards.push_back(forward(chunk * shape.devices() + device, m));
        passes.backwards.push_back(backward(other_end * shape.devices() + device, m));
      }
  return passes;
}

}  // namespace

Schedule interleaved(PipelineShape shape) {
  Schedule schedule = empty_schedule("interleaved-v" + std::to_string(shape.chunks), shape,
                                     {looped(shape.stages, shape.devices())});
  const std::vector<int> borders = group_borders(shape);
  const int largest_group = borders[1];
  for (int device = 0; device < shape.devices(); ++device) {
    const auto [forwards, backwards] = passes(shape, device, borders);
    // A group passes all chunks but the last before its first gradient can return. Give forward
    // pass k of device r the time 2k + 2r and backward pass k the time 2(k + ahead) + 1 + 2r: with
    // this warm-up every pass is later than its inputs, for any number of micro-batches.
    const std::size_t ahead = std::min<std::size_t>(
        forwards.size(), (shape.chunks - 1) * largest_group + 2 * (shape.devices() - 1 - device));
    Lane& lane = schedule.lanes[device];
    for (std::size_t k = 0; k < forwards.size() + ahead; ++k) {
      if (k < forwards.size()) lane.push_back(forwards[k]);
      if (k >= ahead) lane.push_back(backwards[k - ahead]);
    }
  }
  return schedule;
}

Schedule breadth_first(PipelineShape shape) {
  Schedule schedule = empty_schedule("bfs-v" + std::to_string(shape.chunks), shape,
                                     {looped(shape.stages, shape.devices())});
  for (int device = 0; device < shape.devices(); ++device) {
    const auto [forwards, backwards] = passes(shape, device, {0, shape.micro_batches});
    Lane& lane = schedule.lanes[device];
    lane = forwards;
    lane.insert(lane.end(), backwards.begin(), backwards.end());
  }
  return schedule;
}

}  // namespace troupe::schedules
