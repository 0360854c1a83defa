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

/// A tensor's name, type and shape, and the digest of its numbers.
struct TensorDigest {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;
  Digest digest;
};

/// Returns one digest of all tensors, in the order of their names. Equal weights have equal
/// digests, whatever plan, files and order they were computed, stored or listed in.
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

/// Returns an error if a file, or a tensor of one kind, is listed twice.
Status check_parts(std::span<const Part> parts);

/// The description that makes files a checkpoint. It is written last and lists every file with its
/// size and digest.
struct Manifest {
  std::string run = {};  // The id of the run that saved it. Empty: it belongs to any run.
  std::int64_t step = 0;
  std::int64_t samples = 0;
  Value recipe;
  Value model;
  Value state;
  Digest recipe_digest;
  Digest weights_digest;
  std::vector<Part> parts;
};

/// Returns JSON that contains a digest of itself.
std::string write_manifest(const Manifest& manifest);

/// Returns a manifest or an error for any text. Detects any changed bit. File names are plain
/// names, and sizes are within bounds.
Result<Manifest> read_manifest(std::string_view text);

}  // namespace troupe::storage
