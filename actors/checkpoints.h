#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "storage/files/files.h"

namespace troupe::actors {

/// Loads the checkpoint of a step below `root`.
Result<StartPoint> checkpoint_of(storage::Files& files, const std::string& root, std::int64_t step,
                                 MemoryPool& memory);

/// Returns a function that loads the state of a step: `first` if it is of that step, and otherwise
/// the checkpoint in the run's store.
std::function<Result<StartPoint>(std::int64_t step)> loading(RunSpecPtr spec,
                                                             std::optional<StartPoint> first);

/// Loads all tensors of a checkpoint into `memory`.
Result<StartPoint> start_point(const storage::Checkpoint& checkpoint, MemoryPool& memory);

/// Returns an optimizer's part of a start point: the pieces of its section. It shares their memory.
StartPoint part_of(const StartPoint& start, const RunSpec& spec, int optimizer);

/// Assembles a checkpoint from the parts of all optimizers. The result does not depend on stages
/// and sections; tensors that were cut are joined in `memory`. TensorBounds has checked each part.
storage::CheckpointContent checkpoint_content(const RunSpec& spec, std::int64_t step,
                                              std::vector<Snapshot> snapshots, MemoryPool& memory);

}  // namespace troupe::actors
