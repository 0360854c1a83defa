#pragma once

#include <string>

#include "storage/checkpoint/checkpoint.h"

namespace troupe::storage {

/// Writes the weights of a checkpoint as one file for others to read; an existing one is replaced,
/// whole or not at all. What was imported is exported byte by byte as the format's own library
/// wrote it.
Status export_weights(Files& files, const Checkpoint& checkpoint, const std::string& path);

/// The weights of a file that others wrote, as a checkpoint before the first step. The caller adds
/// model and recipe.
Result<CheckpointContent> import_weights(Files& files, const std::string& path, MemoryPool& pool);

}  // namespace troupe::storage
