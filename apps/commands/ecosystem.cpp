#include "apps/commands/ecosystem.h"

#include <algorithm>
#include <set>

#include "storage/checkpoint/match.h"

namespace troupe::apps {
namespace {

struct Renamed {
  std::string_view theirs;
  std::string_view ours;
};

// The keys of config.json that decide a shape or a formula, for each model type.
constexpr Renamed gpt2_keys[] = {{"vocab_size", "vocab"}, {"n_positions", "context"},
                                 {"n_embd", "width"},     {"n_layer", "layers"},
                                 {"n_head", "heads"},     {"tie_word_embeddings", "tied"}};
constexpr Renamed llama_keys[] = {
    {"vocab_size", "vocab"},          {"max_position_embeddings", "context"},
    {"hidden_size", "width"},         {"num_hidden_layers", "layers"},
    {"num_attention_heads", "heads"}, {"num_key_value_heads", "kv_heads"},
    {"intermediate_size", "ffn"},     {"rope_theta", "rope_theta"},
    {"rms_norm_eps", "norm_eps"},     {"tie_word_embeddings", "tied"}};

Value renamed(const Value& config, std::string_view kind, std::span<const Renamed> keys) {
  Value model;
  model.set("kind", kind);
  for (const auto& [theirs, ours] : keys)
    if (const Value* value = config.find(theirs)) model.set(std::string(ours), *value);
  return model;
}

struct Family {
  std::string_view kind;          // As model_type names it, and model.kind.
  std::string_view architecture;  // The class of a language model.
  std::span<const Renamed> keys;
};
constexpr Family families[] = {{"gpt2", "GPT2LMHeadModel", gpt2_keys},
                               {"llama", "LlamaForCausalLM", llama_keys}};

// The key of config.json that contains our model options as they are.
constexpr std::string_view own_key = "troupe";

/// Returns whether the tensor is a mask, which older libraries saved beside the weights.
bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace

Value hugging_face_of(const Value& model) {
  const std::string kind = *model.find("kind")->text();
  Value config;
  const auto family = std::ranges::find(families, kind, &Family::kind);
  if (family == std::end(families)) {
    config.set("model_type", "troupe-" + kind);
  } else {
    config.set("model_type", kind);
    config.set("architectures", Value::List{std::string(family->architecture)});
    config.set("torch_dtype", "float32");
    for (const auto& [theirs, ours] : family->keys)
      if (const Value* value = model.find(ours)) config.set(std::string(theirs), *value);
  }
  config.set(std::string(own_key), model);
  return config;
}

Result<Value> model_of_hugging_face(const Value& config) {
  if (const Value* own = config.find(own_key); own && own->map()) {
    const Value* kind = own->find("kind");
    if (kind && kind->text()) return *own;
    return Error{std::string(own_key) + ": found no \"kind\" of a model"};
  }
  const Value* type = config.find("model_type");
  const std::string name = type && type->text() ? *type->text() : "";
  for (const auto& family : families)
    if (name == family.kind) return renamed(config, family.kind, family.keys);
  return Error{"model_type is \"" + name +
               "\"; gpt2 and llama are known: for others give --config with a [model] section"};
}

Result<ForeignWeights> match_foreign(const storage::Safetensors& file, const models::Model& model) {
  std::vector<storage::WantedTensor> wanted;
  std::set<std::string> names;
  for (const auto& unit : model.units) {
    for (const auto& parameter : unit.layer->parameters())
      if (names.insert(parameter.name).second) wanted.push_back({parameter.name, parameter.shape});
    for (const auto& buffer : unit.layer->buffers())
      if (names.insert(buffer.name).second) wanted.push_back({buffer.name, buffer.shape});
  }
  ForeignWeights weights;
  for (const std::string_view prefix : {"transformer.", "model."}) {
    const bool ours_has_it = std::any_of(
        names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); });
    const bool file_has_it =
        std::any_of(file.tensors().begin(), file.tensors().end(),
                    [&](const auto& view) { return view.name.starts_with(prefix); });
    if (file_has_it && !ours_has_it) weights.prefix = prefix;
  }
  for (auto view : file.tensors()) {
    if (is_mask(view.name) && !names.contains(view.name)) {
      weights.ignored.push_back(view.name);
      continue;
    }
    if (view.name.starts_with(weights.prefix)) view.name.erase(0, weights.prefix.size());
    weights.tensors.push_back(std::move(view));
  }
  if (auto matched = storage::match_tensors(weights.tensors, wanted); !matched)
    return matched.error();
  return weights;
}

}  // namespace troupe::apps
