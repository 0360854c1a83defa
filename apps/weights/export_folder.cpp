#include "apps/weights/export_folder.h"

#include <array>
#include <utility>

#include "config/huggingface/config_json.h"
#include "config/model_kinds.h"
#include "core/json.h"
#include "core/memory/stream.h"
#include "core/units.h"
#include "kernels/rounding.h"

namespace troupe::apps {
namespace {

constexpr const char* config_name = "config.json";
constexpr const char* generation_name = "generation_config.json";
constexpr std::size_t most_text_bytes = std::size_t{1} << 20;

/// Returns a text that lay beside the weights when they were imported, or null.
const std::string* text_beside(const storage::Checkpoint& checkpoint, const std::string& name) {
  const Value* beside = checkpoint.manifest().state.find(std::string(kept_beside));
  const Value* text = beside ? beside->find(name) : nullptr;
  return text ? text->text() : nullptr;
}

/// Reads a small text, or nothing if it is not there.
Result<std::optional<std::string>> small_text(storage::Files& files, const std::string& path) {
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return std::optional<std::string>();
  const auto text = files.read(path);
  if (!text) return text.error();
  if (text->span().size() > most_text_bytes)
    return Error{path + ": found " + size_text(text->span().size()) + ", wanted at most " +
                 size_text(most_text_bytes)};
  return std::optional(std::string(text->text()));
}

Result<std::vector<storage::WeightFile>> divide(const FolderToExport& what) {
  if (what.shard) return divide_weights(what.views, static_cast<std::uint64_t>(*what.shard));
  if (const auto* index = text_beside(what.checkpoint, storage::weights_index_name))
    return storage::divide_weights(what.views, *index);
  return std::vector{storage::WeightFile{storage::weights_name, what.views}};
}

/// Returns whether an index names so many tensors. An import leaves masks out, which it may name.
bool names_as_many(const std::string& index, std::size_t tensors) {
  const auto tree = parse_json(index);
  const Value* map = tree ? tree->find("weight_map") : nullptr;
  return map && map->map() && map->map()->size() == tensors;
}

std::string_view dtype_name(storage::StoredType type) {
  if (type == storage::StoredType::bf16) return "bfloat16";
  return type == storage::StoredType::f16 ? "float16" : "float32";
}

/// Reads a text that lay beside the weights with which a run began. Returns an empty one if there
/// is none.
Result<std::string> text_kept_by_run(storage::Files& files, const FolderToExport& what,
                                     const std::string& name) {
  const auto text =
      small_text(files, what.run_folder + "/" + std::string(kept_by_run) + "/" + name);
  if (!text) return text.error();
  return text->value_or("");
}

/// Returns the config.json of trained weights: that of the weights with which the run began, with
/// what changed since, or one that says all that our keys say.
Result<Value> config_of_trained(storage::Files& files, const FolderToExport& what) {
  const auto text = text_kept_by_run(files, what, config_name);
  if (!text) return text.error();
  const auto came = parse_json(*text);
  auto like =
      came ? config::hugging_face_like(config::model_kinds(), what.model, *came) : std::nullopt;
  return like ? *std::move(like) : config::hugging_face_of(config::model_kinds(), what.model);
}

/// Returns the config.json of imported weights as it came, but for their type.
Result<std::string> config_text(storage::Files& files, const FolderToExport& what) {
  const auto* came = text_beside(what.checkpoint, config_name);
  if (came && !what.type) return *came;
  auto config = came ? parse_json(*came) : config_of_trained(files, what);
  if (!config) return within(config_name, config.error());
  const auto type = dtype_name(what.type.value_or(storage::StoredType::f32));
  for (const char* key : {"torch_dtype", "dtype"})
    if (config->find(key)) config->set(key, type);
  return config::config_json_text(*config);
}

}  // namespace

Result<Value> keep_beside(storage::Files& files, const storage::WeightFiles& weights,
                          bool with_config) {
  Value beside = Value::Map{};
  if (!weights.index().empty()) beside.set(storage::weights_index_name, weights.index());
  for (const char* name : {config_name, generation_name}) {
    if (name == config_name && !with_config) continue;
    auto text = small_text(files, weights.folder() + "/" + name);
    if (!text) return text.error();
    if (*text) beside.set(name, **std::move(text));
  }
  return beside;
}

Status keep_beside_for_run(storage::Files& files, const std::string& init,
                           const std::string& run_folder) {
  const bool is_file = init.ends_with(".safetensors") || init.ends_with(".json");
  const std::string from = is_file ? storage::parent_of(init) : init;
  const std::string to = run_folder + "/" + std::string(kept_by_run);
  for (const char* name : {config_name, generation_name}) {
    const auto text = small_text(files, from + "/" + name);
    if (!text) return text.error();
    if (!*text) continue;
    if (auto made = files.make_directory(to); !made) return made;
    if (auto kept = storage::replace_file(files, to + "/" + name, **text); !kept) return kept;
  }
  return Done{};
}

Result<std::vector<Tensor>> convert(std::vector<storage::TensorView>& views,
                                    std::optional<storage::StoredType> type, MemoryPool& memory) {
  std::vector<Tensor> tensors;
  if (!type) return tensors;
  Stream stream(memory);
  const auto to = *storage::dtype(*type);
  for (auto& view : views) {
    const auto from = storage::dtype(view.type);
    const bool is_number =
        from && (*from == DType::f32 || *from == DType::bf16 || *from == DType::f16);
    if (!is_number || *from == to) continue;
    auto tensor = storage::load(view, memory);
    if (!tensor) return tensor.error();
    // Both smaller types widen without an error.
    if (*from != DType::f32) *tensor = kernels::as_type(stream, *tensor, DType::f32);
    if (to != DType::f32) *tensor = kernels::as_type(stream, *tensor, to);
    tensors.push_back(std::move(*tensor));
    view = storage::view(view.name, tensors.back());
  }
  return tensors;
}

Result<std::uint64_t> write_file(storage::Files& files, const std::string& path,
                                 const std::vector<storage::TensorView>& views,
                                 const storage::Metadata& metadata) {
  const auto written = storage::write_safetensors(files, path, views, metadata);
  if (!written) return written.error();
  return written->bytes;
}

Result<std::uint64_t> export_folder(storage::Files& files, const std::string& folder,
                                    const FolderToExport& what) {
  const auto divided = divide(what);
  if (!divided) return divided.error();
  const auto config = config_text(files, what);
  if (!config) return config.error();
  if (auto made = files.make_directory(folder); !made) return made.error();
  std::uint64_t bytes = 0;
  for (const auto& [name, tensors] : *divided) {
    const auto written =
        write_file(files, folder + "/" + name, tensors, what.checkpoint.metadata());
    if (!written) return written;
    bytes += *written;
  }
  std::vector<std::pair<std::string, std::string>> texts = {{config_name, *config}};
  const auto* index = text_beside(what.checkpoint, storage::weights_index_name);
  if (index && !what.shard && !what.type && names_as_many(*index, what.views.size()))
    texts.emplace_back(storage::weights_index_name, *index);
  else if (divided->size() > 1)
    texts.emplace_back(storage::weights_index_name, storage::weights_index(*divided));
  const auto* came = text_beside(what.checkpoint, generation_name);
  const auto of_run = text_kept_by_run(files, what, generation_name);
  if (!of_run) return of_run.error();
  if (came || !of_run->empty()) texts.emplace_back(generation_name, came ? *came : *of_run);
  if (!what.tokenizer.empty()) {
    const auto text = files.read(what.tokenizer);
    if (!text) return text.error();
    texts.emplace_back("tokenizer.json", std::string(text->text()));
  }
  for (const auto& [name, text] : texts)
    if (auto done = storage::replace_file(files, folder + "/" + name, text); !done)
      return done.error();
  return bytes;
}

}  // namespace troupe::apps
