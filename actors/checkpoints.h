#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "storage/files/files.h"

namespace troupe::actors {

/// The newest good checkpoint below `root` as a run begins with it; nothing where there is none.
Result<std::optional<StartPoint>> newest_checkpoint(storage::Files& files, const std::string& root,
                                                    MemoryPool& memory);

/// Gives the state that an attempt goes on from: `first`, until there is a newer one on the disk;
/// then the newest of the run's store.
std::function<Result<StartPoint>()> loading(RunSpecPtr spec, std::optional<StartPoint> first);

/// All tensors of a checkpoint.
Result<StartPoint> start_point(const storage::Checkpoint& checkpoint, MemoryPool& memory);

/// What of a start point an optimizer begins with: its section's pieces; shares their memory.
StartPoint part_of(const StartPoint& start, const RunSpec& spec, int optimizer);

/// Whether a part of the state that came from another process has exactly the tensors of its
/// optimizer, in their sizes.
Status check(const Snapshot& part, const RunSpec& spec);

/// What is saved once all optimizers have given their part, put together in `memory` where it was
/// cut. Whatever stages and sections are, it is the same. Each part has passed check().
storage::CheckpointContent checkpoint_content(const RunSpec& spec, std::int64_t step,
                                              std::vector<Snapshot> snapshots, MemoryPool& memory);

}  // namespace troupe::actors
