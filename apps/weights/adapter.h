#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

namespace troupe::apps {

/// Returns whether a checkpoint's model has low-rank additions.
bool has_lora(const Value& model);
/// Returns the model without them.
Value without_lora(Value model);

/// Adds the low-rank additions to their matrices, computed in double. The views then show the
/// merged matrices, in the returned memory, and no additions.
Result<std::vector<Tensor>> merge_lora(std::vector<storage::TensorView>& views, const Value& model,
                                       MemoryPool& memory);

/// Writes the additions into a new folder as PEFT reads them: adapter_config.json and
/// adapter_model.safetensors. Returns the bytes of the tensors.
Result<std::uint64_t> export_adapter(storage::Files& files, const std::string& folder,
                                     const std::vector<storage::TensorView>& views,
                                     const Value& model, const storage::Metadata& metadata);

}  // namespace troupe::apps
