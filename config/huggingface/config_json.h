#pragma once

#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// Converts a Hugging Face `config.json`, or one of hugging_face_of(), to a table of our model
/// options. Refuses a key or a value that says that the model computes something else than ours.
Result<Value> model_of_hugging_face(const Value& config);

/// Converts a table of our model options to a `config.json` that `model_of_hugging_face` reads
/// back. For gpt2 and llama it also has the keys of Hugging Face.
Value hugging_face_of(const Value& model);

}  // namespace troupe::config
