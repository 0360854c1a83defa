#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "storage/files/files.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {

/// The name of weights in a folder, and of the index if they are in several files, as in the
/// folders of Hugging Face.
constexpr const char* weights_name = "model.safetensors";
constexpr const char* weights_index_name = "model.safetensors.index.json";

/// Weights in one safetensors file, or in several with an index. Each tensor is in exactly one of
/// them. Nothing outside of the folder is read.
class WeightFiles {
 public:
  static constexpr std::size_t most_files = 4096;
  static constexpr std::size_t most_index_bytes = std::size_t{64} << 20;

  /// Opens a safetensors file, or a folder with one or with an index.
  static Result<WeightFiles> open(Files& files, const std::string& path);

  /// Returns all tensors, file by file. The views are valid as long as this object or a copy of it.
  std::vector<TensorView> tensors() const;
  /// Returns the metadata of the first file.
  const Metadata& metadata() const { return files_.front().metadata(); }
  /// Returns the text of the index; empty for a single file.
  const std::string& index() const { return index_; }
  /// Returns the folder of the files.
  const std::string& folder() const { return folder_; }

 private:
  Status read_index(Files& files);

  std::vector<Safetensors> files_;  // Sorted by name.
  std::string folder_;
  std::string index_;
};

/// A file of weights, and the tensors in it.
struct WeightFile {
  std::string name;
  std::vector<TensorView> tensors;
};

/// Divides tensors, in their order, into files of at most so many bytes of tensors. A larger tensor
/// gets a file of its own.
std::vector<WeightFile> divide_weights(std::vector<TensorView> tensors, std::uint64_t most_bytes);
/// Divides tensors as an index says, which names all of them.
Result<std::vector<WeightFile>> divide_weights(const std::vector<TensorView>& tensors,
                                               const std::string& index);
/// Returns the index of several files.
std::string weights_index(std::span<const WeightFile> files);

}  // namespace troupe::storage
