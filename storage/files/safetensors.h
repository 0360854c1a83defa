#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.h"
#include "core/memory/tensor.h"
#include "storage/files/files.h"
#include "storage/files/stored_type.h"

namespace troupe::storage {

/// A tensor in a file, or one to write to a file. Does not own its bytes, which need not be
/// aligned.
struct TensorView {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// Returns a view of a tensor in host memory. The tensor must outlive it.
TensorView view(const std::string& name, const Tensor& tensor);

/// The file's map of texts, in the order of the file.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A validated safetensors file: every tensor has the bytes that its type and shape need, and
/// together they fill the file without overlap or gap.
class Safetensors {
 public:
  /// The largest header that is accepted.
  static constexpr std::uint64_t max_header_bytes = std::uint64_t{16} << 20;

  static Result<Safetensors> open(Files& files, const std::string& path);
  /// Returns a file or an error for any bytes.
  static Result<Safetensors> parse(Bytes bytes);

  /// Returns the tensors in file order. The views are valid as long as this object or a copy of it.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// Returns null if there is no tensor of that name.
  const TensorView* find(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }
  /// Returns where a tensor's bytes begin in the file.
  std::uint64_t offset_of(const TensorView& tensor) const {
    return static_cast<std::uint64_t>(tensor.bytes.data() - bytes_.span().data());
  }
  Status unchanged() const { return bytes_.unchanged(); }

  /// Copies a tensor into the pool's memory. If it is missing, the error names some that are there.
  Result<Tensor> load(std::string_view name, MemoryPool& pool) const;

 private:
  Bytes bytes_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  Metadata metadata_;
};

/// Copies into the pool's memory. Rejects element types that Troupe does not compute with.
Result<Tensor> load(const TensorView& view, MemoryPool& pool);

/// Sorts larger types first, then by name: the order of the official safetensors library, which
/// keeps every tensor aligned.
void sort_as_ecosystem(std::vector<TensorView>& tensors);

/// The size and digest of a written file.
struct WrittenFile {
  std::uint64_t bytes = 0;
  Digest digest;
};

/// Returns the size of a file with these tensors.
std::uint64_t safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata);

/// Writes a new file with the tensors in the given order and syncs it. Equal contents give equal
/// bytes. Files of the official library are reproduced byte for byte.
Result<WrittenFile> write_safetensors(Files& files, const std::string& path,
                                      std::span<const TensorView> tensors,
                                      const Metadata& metadata = {});

}  // namespace troupe::storage
