#include "storage/files/safetensors.h"

#include <algorithm>
#include <cstring>

#include "core/json.h"
#include "core/units.h"

namespace troupe::storage {
namespace {

constexpr std::uint64_t length_bytes = 8;

/// Reads a number. The file is little-endian.
std::uint64_t read_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

/// Returns a list of at most `most` sizes, none of them negative.
Result<std::vector<std::int64_t>> sizes_of(const Value* list, std::string_view what,
                                           std::size_t most) {
  if (!list || !list->list())
    return Error{std::string(what) + " is missing or is no list; a list of integers was wanted"};
  if (list->list()->size() > most)
    return Error{std::string(what) + " has " + std::to_string(list->list()->size()) +
                 " entries; at most " + std::to_string(most) + " are read"};
  std::vector<std::int64_t> sizes;
  for (const auto& item : *list->list()) {
    if (!item.integer() || *item.integer() < 0)
      return Error{std::string(what) + " holds something that is no integer of at least 0"};
    sizes.push_back(*item.integer());
  }
  return sizes;
}

/// A tensor as the header describes it, before anything else in the file was checked.
struct Described {
  TensorView view;
  std::uint64_t begin, end;
};

Result<Described> describe_tensor(const Value::Entry& entry) {
  Described tensor;
  tensor.view.name = entry.key;
  const auto* type = entry.value.find("dtype");
  if (!type || !type->text()) return Error{"dtype is missing or is no text"};
  const auto stored = stored_type(*type->text());
  if (!stored) return Error{"dtype " + in_quotes(*type->text()) + " is not known"};
  tensor.view.type = *stored;

  const auto shape = sizes_of(entry.value.find("shape"), "shape", Shape::max_rank);
  if (!shape) return shape.error();
  const auto offsets = sizes_of(entry.value.find("data_offsets"), "data_offsets", 2);
  if (!offsets) return offsets.error();
  if (offsets->size() != 2)
    return Error{"data_offsets has " + std::to_string(offsets->size()) +
                 " entries; begin and end were wanted"};
  for (const auto& field : *entry.value.map())
    if (field.key != "dtype" && field.key != "shape" && field.key != "data_offsets")
      return Error{in_quotes(field.key) +
                   " is not known; dtype, shape and data_offsets were wanted"};

  tensor.begin = static_cast<std::uint64_t>((*offsets)[0]);
  tensor.end = static_cast<std::uint64_t>((*offsets)[1]);
  // Count a size of 0 as 1, so that it cannot hide an overflow of the remaining sizes.
  std::int64_t elements = 1;
  for (const auto size : *shape) {
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements) ||
        elements > INT64_MAX / 8)
      return Error{"the shape has more elements than can be counted"};
    tensor.view.shape.append(size);
  }
  const auto wanted =
      static_cast<std::uint64_t>(tensor.view.shape.count()) * bytes_of(tensor.view.type);
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != wanted)
    return Error{"data_offsets are [" + std::to_string(tensor.begin) + ", " +
                 std::to_string(tensor.end) + "], but " + std::string(to_string(tensor.view.type)) +
                 " " + troupe::to_string(tensor.view.shape) + " needs " + std::to_string(wanted) +
                 " bytes"};
  return tensor;
}

Result<Metadata> read_metadata(const Value& value) {
  if (!value.map()) return Error{"__metadata__ is no map; a map of texts was wanted"};
  Metadata metadata;
  for (const auto& entry : *value.map()) {
    if (!entry.value.text())
      return Error{"__metadata__." + entry.key + " is no text; only texts are allowed there"};
    metadata.emplace_back(entry.key, *entry.value.text());
  }
  return metadata;
}

std::string header_of(std::span<const TensorView> tensors, const Metadata& metadata) {
  Value header{Value::Map{}};
  // Append without a search: the names are known to be distinct.
  if (!metadata.empty()) {
    Value::Map texts;
    for (const auto& [key, text] : metadata) texts.push_back({key, text, {}});
    header.map()->push_back({"__metadata__", std::move(texts), {}});
  }
  std::int64_t offset = 0;
  for (const auto& tensor : tensors) {
    Value::List shape;
    for (const auto size : tensor.shape) shape.push_back(size);
    const auto end = offset + static_cast<std::int64_t>(tensor.bytes.size());
    header.map()->push_back({tensor.name,
                             Value::Map{{"dtype", to_string(tensor.type), {}},
                                        {"shape", std::move(shape), {}},
                                        {"data_offsets", Value::List{offset, end}, {}}},
                             {}});
    offset = end;
  }
  auto text = to_json(header);
  // The official library pads with blanks, so that tensors begin at a multiple of 8.
  while (text.size() % 8 != 0) text += ' ';
  return text;
}

Status check_names(std::span<const TensorView> tensors) {
  std::vector<std::string_view> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return Error{"the tensor " + in_quotes(*twice) + " is there twice"};
  if (std::binary_search(names.begin(), names.end(), "__metadata__"))
    return Error{"a tensor cannot be called \"__metadata__\""};
  return Done{};
}

}  // namespace

TensorView view(const std::string& name, const Tensor& tensor) {
  return {name, stored_type(tensor.dtype()), tensor.shape(), tensor.host_bytes()};
}

Result<Safetensors> Safetensors::open(Files& files, const std::string& path) {
  auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  auto file = parse(std::move(*bytes));
  if (!file) return within(path, file.error());
  return file;
}

Result<Safetensors> Safetensors::parse(Bytes bytes) {
  const auto all = bytes.span();
  if (all.size() < length_bytes)
    return Error{"is no safetensors file: it has " + std::to_string(all.size()) +
                 " bytes, and its header's length alone has 8"};
  const auto header_bytes = read_u64(all);
  if (header_bytes > max_header_bytes)
    return Error{"is no safetensors file, or a damaged one: its header would have " +
                 size_text(header_bytes) + "; at most " + size_text(max_header_bytes) +
                 " are read"};
  if (header_bytes > all.size() - length_bytes)
    return Error{"is cut off: its header has " + std::to_string(header_bytes) +
                 " bytes, and only " + std::to_string(all.size() - length_bytes) + " are there"};
  const auto header =
      parse_json(bytes.text().substr(length_bytes, header_bytes), {max_header_bytes, 4});
  if (!header) return within("header", header.error());
  if (!header->map()) return Error{"header: is no map of tensors"};

  Safetensors file;
  std::vector<Described> tensors;
  for (const auto& entry : *header->map()) {
    if (entry.key == "__metadata__") {
      auto metadata = read_metadata(entry.value);
      if (!metadata) return within("header", metadata.error());
      file.metadata_ = std::move(*metadata);
      continue;
    }
    auto tensor = describe_tensor(entry);
    if (!tensor) return within("tensor " + in_quotes(entry.key), tensor.error());
    tensors.push_back(std::move(*tensor));
  }

  // Empty tensors take no space. They sort before a tensor that begins at the same byte.
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const auto data = all.subspan(length_bytes + header_bytes);
  std::uint64_t filled = 0;
  for (auto& tensor : tensors) {
    if (tensor.begin != filled)
      return Error{"tensor " + in_quotes(tensor.view.name) + " begins at byte " +
                   std::to_string(tensor.begin) + ", but what comes before it ends at " +
                   std::to_string(filled) + "; tensors must not overlap or leave gaps"};
    if (tensor.end > data.size())
      return Error{"tensor " + in_quotes(tensor.view.name) + " ends at byte " +
                   std::to_string(tensor.end) + ", but the file holds only " +
                   std::to_string(data.size()) + "; it is cut off"};
    filled = tensor.end;
    tensor.view.bytes = data.subspan(tensor.begin, tensor.end - tensor.begin);
    file.by_name_.emplace(tensor.view.name, file.tensors_.size());
    file.tensors_.push_back(std::move(tensor.view));
  }
  if (filled != data.size())
    return Error{"has " + std::to_string(data.size() - filled) +
                 " bytes after its last tensor; they belong to none"};
  file.bytes_ = std::move(bytes);
  return file;
}

const TensorView* Safetensors::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

Result<Tensor> Safetensors::load(std::string_view name, MemoryPool& pool) const {
  if (const auto* found = find(name)) return storage::load(*found, pool);
  std::string there;
  for (std::size_t i = 0; i < std::min<std::size_t>(tensors_.size(), 3); ++i)
    there += (i ? ", " : "") + in_quotes(tensors_[i].name);
  return Error{"there is no tensor " + in_quotes(name) + " among its " +
               std::to_string(tensors_.size()) + (there.empty() ? "" : ": " + there + ", ...")};
}

Result<Tensor> load(const TensorView& view, MemoryPool& pool) {
  const auto type = dtype(view.type);
  if (!type)
    return Error{"tensor " + in_quotes(view.name) + " has elements of type " +
                 std::string(to_string(view.type)) + ", with which Troupe does not compute"};
  try {
    auto tensor = Tensor::make(pool, view.shape, *type);
    if (!view.bytes.empty())
      std::memcpy(tensor.host_bytes().data(), view.bytes.data(), view.bytes.size());
    return tensor;
  } catch (const std::bad_alloc&) {
    return Error{"tensor " + in_quotes(view.name) + ": no memory is left for its " +
                 std::to_string(view.bytes.size()) + " bytes"};
  }
}

void sort_as_ecosystem(std::vector<TensorView>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.type != b.type ? a.type > b.type : a.name < b.name;
  });
}

std::uint64_t safetensors_bytes(std::span<const TensorView> tensors, const Metadata& metadata) {
  std::uint64_t bytes = length_bytes + header_of(tensors, metadata).size();
  for (const auto& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

Result<WrittenFile> write_safetensors(Files& files, const std::string& path,
                                      std::span<const TensorView> tensors,
                                      const Metadata& metadata) {
  if (auto status = check_names(tensors); !status) return within(path, status.error());
  const auto header = header_of(tensors, metadata);
  if (header.size() > Safetensors::max_header_bytes)
    return Error{path + ": the header would have " + size_text(header.size()) + "; at most " +
                 size_text(Safetensors::max_header_bytes) + " can be read again"};
  auto file = files.create(path);
  if (!file) return file.error();

  WrittenFile written;
  Digester digester;
  const auto write = [&](std::span<const std::byte> bytes) {
    digester.add(bytes);
    written.bytes += bytes.size();
    return (*file)->write(bytes);
  };
  std::array<std::byte, length_bytes> length;
  for (std::size_t i = 0; i < length_bytes; ++i)
    length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  auto status = write(length);
  if (status) status = write(std::as_bytes(std::span(header)));
  for (const auto& tensor : tensors) {
    assert(tensor.bytes.size() ==
           static_cast<std::size_t>(tensor.shape.count()) * bytes_of(tensor.type));
    if (status) status = write(tensor.bytes);
  }
  if (status) status = (*file)->sync();
  if (status) status = (*file)->close();
  if (!status) {
    (void)files.remove(path);  // Report the first error.
    return status.error();
  }
  written.digest = digester.finish();
  return written;
}

}  // namespace troupe::storage
