#pragma once

#include "storage/files/files.h"

namespace troupe::simulation {

/// The path of the samples of a run with a data file.
inline constexpr auto data_path = "/data/train.safetensors";

/// `spiky`: a number of one sample is infinite.
enum class DataThere { none, whole, changed, spiky };

/// Writes the data file to a disk, or another one in its place.
void write_data(storage::Files& disk, DataThere data);

}  // namespace troupe::simulation
