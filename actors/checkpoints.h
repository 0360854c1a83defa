#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "storage/files.h"

namespace troupe::actors {

/// The newest good checkpoint below `root` as a run begins with it; nothing where there is none.
Result<std::optional<StartPoint>> newest_checkpoint(storage::Files& files, const std::string& root,
                                                    MemoryPool& memory);

/// All tensors of a checkpoint.
Result<StartPoint> start_point(const storage::Checkpoint& checkpoint, MemoryPool& memory);

/// What is saved once all stages have given their part. Whatever the stages are, it is the same.
storage::CheckpointContent checkpoint_content(const RunSpec& spec, std::int64_t step,
                                              std::vector<Snapshot> snapshots);

}  // namespace troupe::actors
