#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "storage/files/files.h"

namespace troupe::actors {

/// Loads the newest good checkpoint below `root`. Returns nothing if there is none.
Result<std::optional<StartPoint>> newest_checkpoint(storage::Files& files, const std::string& root,
                                                    MemoryPool& memory);

/// Returns a function that loads the state to resume from: `first` if it is set, and otherwise the
/// newest checkpoint in the run's store.
std::function<Result<StartPoint>()> loading(RunSpecPtr spec, std::optional<StartPoint> first);

/// Loads all tensors of a checkpoint into `memory`.
Result<StartPoint> start_point(const storage::Checkpoint& checkpoint, MemoryPool& memory);

/// Returns an optimizer's part of a start point: the pieces of its section. It shares their memory.
StartPoint part_of(const StartPoint& start, const RunSpec& spec, int optimizer);

/// Checks that a part of the state, which came from another process, has exactly the tensors of its
/// optimizer, in their sizes.
Status check(const Snapshot& part, const RunSpec& spec);

/// Assembles a checkpoint from the parts of all optimizers. The result does not depend on stages
/// and sections; tensors that were cut are joined in `memory`. Each part must have passed check().
storage::CheckpointContent checkpoint_content(const RunSpec& spec, std::int64_t step,
                                              std::vector<Snapshot> snapshots, MemoryPool& memory);

}  // namespace troupe::actors
