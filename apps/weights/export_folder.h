#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/files/weight_files.h"

namespace troupe::apps {

/// The key in a checkpoint's small state that has the texts which lay beside imported weights. They
/// leave with the weights as they came.
constexpr std::string_view kept_beside = "beside";

/// The subfolder of a run's folder with the texts that lay beside the weights with which the run
/// began.
constexpr std::string_view kept_by_run = "from";

/// Reads the texts that lie beside weights: the index, generation_config.json, and, unless the
/// model was described elsewhere, config.json.
Result<Value> keep_beside(storage::Files& files, const storage::WeightFiles& weights,
                          bool with_config);

/// Copies config.json and generation_config.json beside the weights of `init` (model.init), as far
/// as they are there, to the folder of a run.
Status keep_beside_for_run(storage::Files& files, const std::string& init,
                           const std::string& run_folder);

/// Rounds tensors of numbers to a type; nothing means no change. The views then show the returned
/// tensors.
Result<std::vector<Tensor>> convert(std::vector<storage::TensorView>& views,
                                    std::optional<storage::StoredType> type, MemoryPool& memory);

struct FolderToExport {
  const storage::Checkpoint& checkpoint;
  Value model;  // The manifest's, or what was made of it.
  const std::vector<storage::TensorView>& views;
  std::string run_folder;                   // The folder of its run.
  std::string tokenizer;                    // The path of tokenizer.json; empty: none.
  std::optional<storage::StoredType> type;  // To which the views were rounded.
  std::optional<std::int64_t> shard;        // The most bytes of a file.
};
/// Writes the weights into a new folder, with the texts that `checkpoint import` and other programs
/// need. Returns the bytes of the weights.
Result<std::uint64_t> export_folder(storage::Files& files, const std::string& folder,
                                    const FolderToExport& what);
/// Writes the weights alone. Returns their bytes.
Result<std::uint64_t> write_file(storage::Files& files, const std::string& path,
                                 const std::vector<storage::TensorView>& views,
                                 const storage::Metadata& metadata);

}  // namespace troupe::apps
