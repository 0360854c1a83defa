#pragma once

#include <string>

#include "storage/checkpoint/checkpoint.h"

namespace troupe::storage {

/// Writes the weights of a checkpoint as one file for other programs. Replaces an existing file
/// atomically. An imported file of the official safetensors library is exported byte for byte.
Status export_weights(Files& files, const Checkpoint& checkpoint, const std::string& path);

/// Reads the weights of another program's file as a checkpoint before the first step. The caller
/// adds model and recipe.
Result<CheckpointContent> import_weights(Files& files, const std::string& path, MemoryPool& pool);

}  // namespace troupe::storage
