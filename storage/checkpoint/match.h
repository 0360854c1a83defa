#pragma once

#include <span>
#include <string>

#include "storage/checkpoint/manifest.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {

/// A tensor that a model needs.
struct WantedTensor {
  std::string name;
  Shape shape;
};

/// Returns an error unless the tensors are exactly those of the model, with the right shapes. The
/// error names the first few differences.
Status match_tensors(std::span<const TensorView> found, std::span<const WantedTensor> wanted);

/// Returns an error with the differing keys and values if a checkpoint has another model or recipe.
Status match_model(const Manifest& manifest, const Value& model);
Status match_recipe(const Manifest& manifest, const Value& recipe);

}  // namespace troupe::storage
