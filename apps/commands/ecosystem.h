#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/model.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

namespace troupe::apps {

/// The model that a Hugging Face `config.json` describes, as our own table of options.
Result<Value> model_of_hugging_face(const Value& config);

/// A file of weights as the ecosystem writes it, matched to a model.
struct ForeignWeights {
  std::vector<storage::TensorView> tensors;  // By our names, in the order of the file.
  std::string prefix;                // What the file puts in front of every name: "transformer.".
  std::vector<std::string> ignored;  // Tensors that hold nothing learned: attention masks.
};

/// The error names the first few tensors that are missing, too many or of another shape.
Result<ForeignWeights> match_foreign(const storage::Safetensors& file, const models::Model& model);

}  // namespace troupe::apps
