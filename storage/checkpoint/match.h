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

/// Whether the tensors are those of the model: none missing, none too many, all of the right shape.
/// The error names the first few that differ, and how.
Status match_tensors(std::span<const TensorView> found, std::span<const WantedTensor> wanted);

/// Whether a checkpoint is of this model and recipe: names the keys that differ and both values.
Status match_model(const Manifest& manifest, const Value& model);
Status match_recipe(const Manifest& manifest, const Value& recipe);

}  // namespace troupe::storage
