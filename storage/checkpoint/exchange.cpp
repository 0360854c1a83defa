#include "storage/checkpoint/exchange.h"

namespace troupe::storage {

Status export_weights(Files& files, const Checkpoint& checkpoint, const std::string& path) {
  auto tensors = checkpoint.weights();
  const auto in_parts = [&] {
    int count = 0;
    for (const auto& part : checkpoint.manifest().parts) count += part.kind == PartKind::weights;
    return count;
  };
  // One file keeps its imported order. Several were split by a plan and need sorting.
  if (in_parts() > 1) sort_as_ecosystem(tensors);
  const auto temporary = path + ".new";
  // Remove what a crash may have left under that name.
  if (auto removed = remove_if_there(files, temporary); !removed) return removed;
  const auto written = write_safetensors(files, temporary, tensors, checkpoint.metadata());
  if (!written) return written.error();
  if (auto renamed = files.rename(temporary, path); !renamed) {
    (void)files.remove(temporary);  // Report the first error.
    return renamed;
  }
  return files.sync_directory(parent_of(path));
}

Result<CheckpointContent> import_weights(Files& files, const std::string& path, MemoryPool& pool) {
  const auto file = Safetensors::open(files, path);
  if (!file) return file.error();
  CheckpointContent content;
  content.metadata = file->metadata();
  for (const auto& each : file->tensors()) {
    auto tensor = load(each, pool);
    if (!tensor) return within(path, tensor.error());
    content.weights.push_back({each.name, std::move(*tensor)});
  }
  return content;
}

}  // namespace troupe::storage
