#pragma once

#include <memory>
#include <optional>
#include <string>

#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"

namespace troupe::storage {

/// Opens `input` and `target` of a .safetensors file. The first dimension counts samples. f32 stays
/// f32; integers become i32.
Result<std::unique_ptr<Dataset>> open_tensors(DataSpec spec, const DataNeeds& needs, Files& files);

/// Opens IDX images [n, height, width] or [n, channels, height, width] and their labels [n]. Scales
/// pixels to numbers from 0 to 1.
Result<std::unique_ptr<Dataset>> open_images(DataSpec spec, const DataNeeds& needs, Files& files);

/// Returns "train-labels-idx1-ubyte" for "train-images-idx3-ubyte"; none without "images".
std::optional<std::string> labels_beside(const std::string& images);

}  // namespace troupe::storage
