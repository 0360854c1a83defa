#pragma once

#include <string>
#include <vector>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "models/model.h"
#include "storage/files/safetensors.h"

namespace troupe::apps {

/// A weights file that another program may have written, matched to a model.
struct ForeignWeights {
  std::vector<NamedTensor> tensors;  // Under our names, in the given order.
  std::string prefix;                // The prefix of all names in the file: "transformer.".
  std::vector<std::string> ignored;  // Tensors without learned values, such as attention masks.
};

/// Reads the weights of a model. If none of them is of low-rank additions (LoRA), these are left
/// out: the weights are those of a base. The error names the first few tensors that are missing,
/// unexpected or of a wrong shape.
Result<ForeignWeights> read_weights(const std::vector<storage::TensorView>& found,
                                    const models::Model& model, MemoryPool& memory);

/// Widens numbers in bf16 and fp16, in which other programs save weights, to fp32.
void widen(std::vector<NamedTensor>& tensors, MemoryPool& memory);

}  // namespace troupe::apps
