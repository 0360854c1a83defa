#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/model.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

namespace troupe::apps {

/// Converts a Hugging Face `config.json`, or one of hugging_face_of(), to a table of our model
/// options.
Result<Value> model_of_hugging_face(const Value& config);

/// Converts a table of our model options to a `config.json` that `model_of_hugging_face` reads
/// back. For gpt2 and llama it also has the keys of Hugging Face.
Value hugging_face_of(const Value& model);

/// A weights file from the Hugging Face ecosystem, matched to a model.
struct ForeignWeights {
  // The tensors under our names, in the order of the file.
  std::vector<storage::TensorView> tensors;
  std::string prefix;                // The prefix of all names in the file: "transformer.".
  std::vector<std::string> ignored;  // Tensors without learned values, such as attention masks.
};

/// Matches a file to a model. The error names the first few tensors that are missing, unexpected or
/// of a wrong shape.
Result<ForeignWeights> match_foreign(const storage::Safetensors& file, const models::Model& model);

}  // namespace troupe::apps
