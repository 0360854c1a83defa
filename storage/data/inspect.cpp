#include <algorithm>

#include "storage/data/data_tools.h"
#include "storage/data/idx.h"
#include "storage/files/safetensors.h"

namespace troupe::storage {
namespace {

Value dimensions_of(const Shape& shape) {
  Value::List sizes;
  for (const auto size : shape) sizes.push_back(size);
  return sizes;
}

Result<Value> inspect_tensors(Files& files, const std::string& path) {
  const auto file = Safetensors::open(files, path);
  if (!file) return file.error();
  Value::List tensors;
  std::int64_t elements = 0;
  for (const auto& tensor : file->tensors()) {
    elements += tensor.shape.count();
    tensors.push_back(Value::Map{{"name", tensor.name, {}},
                                 {"type", to_string(tensor.type), {}},
                                 {"shape", dimensions_of(tensor.shape), {}}});
  }
  Value::Map metadata;
  for (const auto& [key, text] : file->metadata()) metadata.push_back({key, text, {}});
  return Value(Value::Map{{"kind", "safetensors", {}},
                          {"elements", elements, {}},
                          {"metadata", std::move(metadata), {}},
                          {"tensors", std::move(tensors), {}}});
}

Result<Value> inspect_shard(Files& files, const std::string& path) {
  const auto shard = TokenShard::open(files, path);
  if (!shard) return shard.error();
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < shard->count(); ++i) largest = std::max(largest, (*shard)[i]);
  return Value(Value::Map{{"kind", "token shard", {}},
                          {"bits", shard->width() == TokenShard::Width::bits16 ? 16 : 32, {}},
                          {"tokens", shard->count(), {}},
                          {"largest_token", std::int64_t{largest}, {}}});
}

Result<Value> inspect_idx(Files& files, const std::string& path) {
  const auto array = IdxArray::open(files, path);
  if (!array) return array.error();
  return Value(Value::Map{{"kind", "IDX", {}}, {"shape", dimensions_of(array->shape()), {}}});
}

Result<Value> inspect_tokenizer(Files& files, const std::string& path) {
  const auto tokenizer = Tokenizer::open(files, path);
  if (!tokenizer) return tokenizer.error();
  Value::List added;
  for (const auto& token : tokenizer->added()) added.push_back(token.text);
  return Value(Value::Map{{"kind", tokenizer->kind() + " tokenizer", {}},
                          {"vocabulary", tokenizer->vocabulary(), {}},
                          {"merges", tokenizer->merges(), {}},
                          {"added", std::move(added), {}}});
}

Value describe_dataset(const Dataset& dataset) {
  Value::Map map = {{"kind", "dataset", {}},
                    {"description", dataset.description(), {}},
                    {"classes", dataset.classes(), {}}};
  if (const auto rate = dataset.entropy_rate()) map.push_back({"entropy_rate", *rate, {}});
  return map;
}

}  // namespace

Result<Value> inspect_data(Files& files, const std::string& spec) {
  const auto name = name_of(spec);
  if (!spec.starts_with("made:") && spec.find_first_of("?*") == std::string::npos) {
    if (name.ends_with(".safetensors")) return inspect_tensors(files, spec);
    if (name.ends_with(".bin")) return inspect_shard(files, spec);
    if (name.ends_with("-ubyte") || name.ends_with(".idx")) return inspect_idx(files, spec);
    if (name.ends_with(".json")) return inspect_tokenizer(files, spec);
  }
  // Token data needs a context, and its description does not depend on which. Other data has none.
  // Prompts with answers need one that cuts none of them.
  auto dataset = open_dataset(spec, {.context = 1}, files);
  constexpr std::int64_t long_text = 1 << 24;
  const DataNeeds of_pairs{
      .context = 512,
      .ignore = -100,
      .inputs = {{{"source", {512}, DType::i32}, {}}, {{"decoder_tokens", {512}, DType::i32}, {}}},
      .target = {512}};
  for (const DataNeeds& needs : {DataNeeds(), DataNeeds{.context = long_text, .ignore = -100},
                                 DataNeeds{.context = 1, .ignore = -100}, of_pairs}) {
    if (dataset) break;
    auto other = open_dataset(spec, needs, files);
    if (other) dataset = std::move(other);
  }
  if (!dataset) return dataset.error();
  return describe_dataset(**dataset);
}

}  // namespace troupe::storage
