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

/// Which bytes a file of data has, as far as that can be told before the first step. A file of up
/// to 4 MiB is read whole. Of a larger one 256 blocks of 16 KiB are read, spread evenly from its
/// first byte to its last, so that 100 GB take as long as 4 MiB. Equal digests then prove that the
/// sizes and these blocks are equal; a file that differs in a few bytes between them is not found
/// out. Another text, another shard, a longer or a cut file, and a shifted one are.
struct DataFile {
  std::string path;
  Digest digest;

  friend bool operator==(const DataFile&, const DataFile&) = default;
};

Result<Digest> identity_of(Files& files, const std::string& path);

/// A dataset and the files that it was made of. Any thread may read.
struct OpenedData {
  std::shared_ptr<const Dataset> dataset;
  std::vector<DataFile> files;  // In the order in which they were read; none for made data.
};

/// Opens a dataset, or gives the one that this process opened before if its files are unchanged by
/// size, time and inode: an attempt after a loss then reads none of it again. Up to 4 datasets are
/// kept. Errors name the file.
Result<OpenedData> open_data(const std::string& spec, const DataNeeds& needs, Files& files);

}  // namespace troupe::storage
