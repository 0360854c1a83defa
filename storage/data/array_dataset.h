#pragma once

#include <memory>
#include <optional>
#include <string>

#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"

namespace troupe::storage {

/// `input` and `target` of a .safetensors file, one sample for each entry of the first dimension.
/// f32 stays as it is; integers become i32.
Result<std::unique_ptr<Dataset>> open_tensors(DataSpec spec, const DataNeeds& needs, Files& files);

/// IDX images [n, height, width] or [n, channels, height, width] and their labels [n]. A pixel
/// becomes a number from 0 to 1.
Result<std::unique_ptr<Dataset>> open_images(DataSpec spec, const DataNeeds& needs, Files& files);

/// "train-labels-idx1-ubyte" for "train-images-idx3-ubyte"; none for a name without "images".
std::optional<std::string> labels_beside(const std::string& images);

}  // namespace troupe::storage
