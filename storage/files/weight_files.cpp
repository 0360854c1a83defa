#include "storage/files/weight_files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/json.h"
#include "core/units.h"

namespace troupe::storage {
namespace {

/// The name of a tensor's file, by the tensor's name.
using WeightMap = std::map<std::string, std::string>;

/// Returns whether a name is that of a file in the folder of the index.
bool is_file_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

Result<WeightMap> parse_index(std::string_view text) {
  const auto tree = parse_json(text, {WeightFiles::most_index_bytes, 8});
  if (!tree) return Error{":" + tree.error().text};
  const Value* named = tree->map() ? tree->find("weight_map") : nullptr;
  if (!named || !named->map())
    return Error{": found no weight_map; wanted a table with the file of each tensor"};
  WeightMap map;
  for (const auto& [tensor, file, position] : *named->map()) {
    const std::string key = ": weight_map." + tensor + ": found ";
    if (!file.text()) return Error{key + to_json(file) + ", wanted the name of a file"};
    if (!is_file_name(*file.text()))
      return Error{key + to_json(file) + ", wanted a .safetensors file in the folder of the index"};
    map.emplace(tensor, *file.text());
  }
  if (map.empty()) return Error{": weight_map is empty"};
  return map;
}

}  // namespace

Result<WeightFiles> WeightFiles::open(Files& files, const std::string& path) {
  WeightFiles weights;
  const auto inside = files.exists(path + "/" + weights_name);
  const auto index = files.exists(path + "/" + weights_index_name);
  if (inside.ok() && index.ok() && *inside && *index)
    return Error{path + ": found " + weights_name + " and " + weights_index_name +
                 ", which may differ; remove one of them"};
  const bool is_folder = (inside.ok() && *inside) || (index.ok() && *index);
  weights.folder_ = is_folder ? path : parent_of(path);
  if (index.ok() && *index) {
    if (auto read = weights.read_index(files); !read) return read.error();
    return weights;
  }
  if (const auto there = files.inspect(path);
      !is_folder && there && there->kind == DirectoryEntry::Kind::directory)
    return Error{path + ": found neither " + weights_name + " nor " + weights_index_name +
                 " in this folder"};
  auto file = Safetensors::open(files, is_folder ? path + "/" + weights_name : path);
  if (!file) return file.error();
  weights.files_.push_back(std::move(*file));
  return weights;
}

Status WeightFiles::read_index(Files& files) {
  const std::string path = folder_ + "/" + weights_index_name;
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  if (bytes->span().size() > most_index_bytes)
    return Error{path + ": found " + size_text(bytes->span().size()) + ", wanted at most " +
                 size_text(most_index_bytes)};
  index_ = std::string(bytes->text());
  const auto map = parse_index(index_);
  if (!map) return Error{path + map.error().text};
  std::map<std::string, std::size_t> wanted;  // Tensors by file.
  for (const auto& [tensor, file] : *map) ++wanted[file];
  if (wanted.size() > most_files)
    return Error{path + ": found " + std::to_string(wanted.size()) + " files, wanted at most " +
                 std::to_string(most_files)};
  for (const auto& [name, count] : wanted) {
    auto file = Safetensors::open(files, folder_ + "/" + name);
    if (!file) return file.error();
    for (const auto& tensor : file->tensors()) {
      const auto found = map->find(tensor.name);
      if (found == map->end() || found->second != name)
        return Error{folder_ + "/" + name + ": found the tensor \"" + tensor.name + "\", which " +
                     weights_index_name +
                     (found == map->end() ? " does not name" : " names for " + found->second)};
    }
    if (file->tensors().size() != count) {
      const auto missing = std::ranges::find_if(*map, [&](const auto& entry) {
        return entry.second == name && !file->find(entry.first);
      });
      return Error{folder_ + "/" + name + ": lacks the tensor \"" + missing->first + "\", which " +
                   weights_index_name + " names; copy the file again"};
    }
    files_.push_back(std::move(*file));
  }
  return Done{};
}

std::vector<TensorView> WeightFiles::tensors() const {
  std::vector<TensorView> all;
  for (const auto& file : files_)
    all.insert(all.end(), file.tensors().begin(), file.tensors().end());
  return all;
}

std::vector<WeightFile> divide_weights(std::vector<TensorView> tensors, std::uint64_t most_bytes) {
  std::vector<WeightFile> files(1);
  std::uint64_t bytes = 0;
  for (auto& tensor : tensors) {
    if (!files.back().tensors.empty() && bytes + tensor.bytes.size() > most_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes.size();
    files.back().tensors.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", i + 1,
                  files.size());
    files[i].name = files.size() == 1 ? weights_name : name.data();
  }
  return files;
}

Result<std::vector<WeightFile>> divide_weights(const std::vector<TensorView>& tensors,
                                               const std::string& index) {
  const auto map = parse_index(index);
  if (!map) return Error{weights_index_name + map.error().text};
  std::map<std::string, WeightFile> files;
  for (const auto& tensor : tensors) {
    const auto found = map->find(tensor.name);
    if (found == map->end())
      return Error{std::string(weights_index_name) + ": does not name the tensor \"" + tensor.name +
                   "\""};
    files[found->second].tensors.push_back(tensor);
  }
  std::vector<WeightFile> divided;
  for (auto& [name, file] : files) divided.push_back({name, std::move(file.tensors)});
  return divided;
}

std::string weights_index(std::span<const WeightFile> files) {
  WeightMap map;
  std::uint64_t bytes = 0;
  for (const auto& file : files)
    for (const auto& tensor : file.tensors) {
      map.emplace(tensor.name, file.name);
      bytes += tensor.bytes.size();
    }
  Value::Map named;
  for (const auto& [tensor, file] : map) named.push_back({tensor, file, {}});
  Value metadata;
  metadata.set("total_size", static_cast<std::int64_t>(bytes));
  Value index;
  index.set("metadata", std::move(metadata));
  index.set("weight_map", std::move(named));
  return to_json_lines(index);
}

}  // namespace troupe::storage
