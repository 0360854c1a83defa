#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/result.h"
#include "storage/data/dataset.h"
#include "storage/files/files.h"

namespace troupe::storage {

/// A data file and a digest that identifies it before the first step. A file of up to 4 MiB is
/// hashed whole. For a larger one, 32 blocks of 16 KiB, spread evenly over the file, are hashed
/// with its size, so that a node which takes over a stage is not held up by a dataset of many large
/// shards. This detects another text, another shard, and a longer, cut or shifted file, but not a
/// few changed bytes between the blocks.
struct DataFile {
  std::string path;
  Digest digest;

  friend bool operator==(const DataFile&, const DataFile&) = default;
};

Result<Digest> identity_of(Files& files, const std::string& path);

/// A dataset and the files that it was opened from. Any thread may read.
struct OpenedData {
  std::shared_ptr<const Dataset> dataset;
  std::vector<DataFile> files;  // In the order of reading. Empty for generated data.
};

/// Opens a dataset, or returns an open one of this process if the size, time and inode of its files
/// are unchanged, so that a new attempt reads nothing again. Keeps up to 4 datasets open. Errors
/// name the file.
Result<OpenedData> open_data(const std::string& spec, const DataNeeds& needs, Files& files);

}  // namespace troupe::storage
