#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {

/// What a tensor is, and what its numbers hash to.
struct TensorDigest {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;
  Digest digest;
};

/// One hash of all tensors, in the order of their names: equal weights have equal digests, whatever
/// the plan, the files and the order they were computed, stored or listed in.
Digest combined_digest(std::vector<TensorDigest> tensors);
TensorDigest tensor_digest(const TensorView& view);
Digest weights_digest(std::span<const NamedTensor> weights);

enum class PartKind { weights, optimizer };
std::string_view to_string(PartKind kind);

/// A file of a checkpoint.
struct Part {
  std::string file;
  PartKind kind = PartKind::weights;
  std::uint64_t bytes = 0;
  Digest digest;
  std::vector<TensorDigest> tensors;
};

Digest weights_digest(std::span<const Part> parts);

/// Whether no file, and no tensor of a kind, is there twice.
Status check_parts(std::span<const Part> parts);

/// What makes files a checkpoint: it is written last, and names every file with its size and
/// digest.
struct Manifest {
  std::string run = {};  // The id of the run that saved it; empty if it belongs to any run.
  std::int64_t step = 0;
  std::int64_t samples = 0;
  Value recipe;
  Value model;
  Value state;
  Digest recipe_digest;
  Digest weights_digest;
  std::vector<Part> parts;
};

/// JSON that carries a digest of itself.
std::string write_manifest(const Manifest& manifest);

/// Any text gives a manifest or an error: a manifest of which a single bit changed is not one. The
/// names of its files are plain names, and its sizes are within bounds.
Result<Manifest> read_manifest(std::string_view text);

}  // namespace troupe::storage
