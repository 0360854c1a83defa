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

/// A tensor in a file, or one that is to be written to a file: its numbers are somebody else's, and
/// need not be aligned.
struct TensorView {
  std::string name;
  StoredType type = StoredType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// A view of a tensor in host memory; the tensor must outlive it.
TensorView view(const std::string& name, const Tensor& tensor);

/// The map of texts that a file carries along, in the order of the file.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// A safetensors file that was found to be whole: every tensor has the bytes that its type and
/// shape need, and together they fill the file without overlap or gap.
class Safetensors {
 public:
  /// A header larger than this is refused.
  static constexpr std::uint64_t max_header_bytes = std::uint64_t{16} << 20;

  static Result<Safetensors> open(Files& files, const std::string& path);
  /// Any bytes give a file or an error.
  static Result<Safetensors> parse(Bytes bytes);

  /// As they lie in the file. The views are valid as long as this object or a copy of it.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  /// Null where there is none of that name.
  const TensorView* find(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }
  /// Where in the file the bytes of one of its tensors begin.
  std::uint64_t offset_of(const TensorView& tensor) const {
    return static_cast<std::uint64_t>(tensor.bytes.data() - bytes_.span().data());
  }
  Status unchanged() const { return bytes_.unchanged(); }

  /// A copy in the pool's memory. The error names what is there when the tensor is not.
  Result<Tensor> load(std::string_view name, MemoryPool& pool) const;

 private:
  Bytes bytes_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  Metadata metadata_;
};

/// Copies into the pool. An element type that Troupe does not compute with is an error.
Result<Tensor> load(const TensorView& view, MemoryPool& pool);

/// Larger types first, then by name: the order in which the format's own library writes, and which
/// keeps every tensor aligned.
void sort_as_ecosystem(std::vector<TensorView>& tensors);

/// What was written to a file.
struct WrittenFile {
  std::uint64_t bytes = 0;
  Digest digest;
};

/// The bytes that a file with these tensors has.
std::uint64_t safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata);

/// Writes a new file, tensor after tensor in the given order, and syncs it. Equal contents give
/// equal bytes, and what the format's own library wrote is written again as it was.
Result<WrittenFile> write_safetensors(Files& files, const std::string& path,
                                      std::span<const TensorView> tensors,
                                      const Metadata& metadata = {});

}  // namespace troupe::storage
