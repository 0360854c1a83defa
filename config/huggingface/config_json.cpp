#include "config/huggingface/config_json.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"

namespace troupe::config {
namespace {

struct Renamed {
  std::string_view theirs;
  std::string_view ours;
  std::string_view otherwise;  // The value that its library takes for an absent key, as JSON.
};

// The keys of config.json that decide a shape or a formula, for each model type.
constexpr Renamed gpt2_keys[] = {
    {"vocab_size", "vocab", "50257"}, {"n_positions", "context", "1024"},
    {"n_embd", "width", "768"},       {"n_layer", "layers", "12"},
    {"n_head", "heads", "12"},        {"tie_word_embeddings", "tied", "true"}};
constexpr Renamed llama_keys[] = {
    {"vocab_size", "vocab", "32000"},       {"max_position_embeddings", "context", "2048"},
    {"hidden_size", "width", "4096"},       {"num_hidden_layers", "layers", "32"},
    {"num_attention_heads", "heads", "32"}, {"num_key_value_heads", "kv_heads", "0"},
    {"intermediate_size", "ffn", "11008"},  {"rope_theta", "rope_theta", "10000.0"},
    {"rms_norm_eps", "norm_eps", "1e-6"},   {"tie_word_embeddings", "tied", "false"}};

Value renamed(const Value& config, std::string_view kind, std::span<const Renamed> keys) {
  Value model;
  model.set("kind", kind);
  for (const auto& [theirs, ours, otherwise] : keys) {
    const Value* value = config.find(theirs);
    const bool is_there = value && *value != Value();
    model.set(std::string(ours), is_there ? *value : *parse_json(otherwise));
  }
  return model;
}

// The key of config.json that contains our model options as they are.
constexpr std::string_view own_key = "troupe";

/// A key of config.json that we do not have, and the values under which the model is still ours.
struct Fixed {
  std::string_view key;
  std::string_view values;  // A JSON list. Null: the key may be absent, or null.
};
constexpr Fixed gpt2_fixed[] = {{"activation_function", R"(["gelu_new", "gelu_pytorch_tanh"])"},
                                {"layer_norm_epsilon", "[1e-5]"},
                                {"scale_attn_weights", "[true]"},
                                {"scale_attn_by_inverse_layer_idx", "[false]"},
                                {"add_cross_attention", "[false]"}};
constexpr Fixed llama_fixed[] = {{"hidden_act", R"(["silu"])"},   {"attention_bias", "[false]"},
                                 {"mlp_bias", "[false]"},         {"rope_scaling", "[null]"},
                                 {"sliding_window", "[null]"},    {"pretraining_tp", "[1]"},
                                 {"partial_rotary_factor", "[1]"}};
struct Family {
  std::string_view kind;          // As model_type names it, and model.kind.
  std::string_view architecture;  // The class of a language model.
  std::span<const Renamed> keys;
  std::span<const Fixed> fixed;
};
constexpr Family families[] = {{"gpt2", "GPT2LMHeadModel", gpt2_keys, gpt2_fixed},
                               {"llama", "LlamaForCausalLM", llama_keys, llama_fixed}};

/// Keys that change no result: names, tokens, drops that training chooses itself, and how results
/// are returned.
constexpr std::string_view idle_keys[] = {"_name_or_path",
                                          "architectures",
                                          "model_type",
                                          "torch_dtype",
                                          "dtype",
                                          "transformers_version",
                                          "use_cache",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "unk_token_id",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "initializer_range",
                                          "attn_pdrop",
                                          "embd_pdrop",
                                          "resid_pdrop",
                                          "attention_dropout",
                                          "summary_activation",
                                          "summary_first_dropout",
                                          "summary_proj_to_labels",
                                          "summary_type",
                                          "summary_use_proj",
                                          "task_specific_params",
                                          "n_ctx",
                                          "gradient_checkpointing",
                                          "output_past",
                                          "return_dict",
                                          "output_hidden_states",
                                          "output_attentions",
                                          "id2label",
                                          "label2id",
                                          "problem_type",
                                          "finetuning_task",
                                          "tokenizer_class",
                                          "prefix",
                                          "torchscript",
                                          "reorder_and_upcast_attn",
                                          "rope_theta",
                                          "rope_parameters",
                                          "head_dim",
                                          "n_inner",
                                          "chunk_size_feed_forward",
                                          "_attn_implementation_autoset"};
/// Keys that must be as here, for every family.
constexpr Fixed always_fixed[] = {
    {"quantization_config", "[null]"}, {"auto_map", "[null]"}, {"is_encoder_decoder", "[false]"}};

std::string shown(const Value* value) { return value ? to_json(*value) : "nothing"; }

Error unlike_ours(const std::string& key, const Value* found, const std::string& wanted) {
  return Error{key + ": found " + shown(found) + ", wanted " + wanted +
               ": with it the model computes something that this program does not"};
}

Status check_fixed(const Value& config, const Fixed& fixed) {
  const std::string key(fixed.key);
  const Value* found = config.find(key);
  const auto values = parse_json(fixed.values);
  if (!found || std::ranges::count(*values->list(), *found) > 0) return Done{};
  std::string wanted;
  for (const auto& value : *values->list())
    wanted += (wanted.empty() ? "" : " or ") + to_json(value);
  return unlike_ours(key, found, wanted);
}

/// Checks a number that another key determines: absent, null, or `wanted`.
Status check_number(const Value& config, const std::string& key,
                    std::optional<std::int64_t> wanted) {
  const Value* found = config.find(key);
  if (!found || *found == Value() || (wanted && found->integer() && *found->integer() == *wanted))
    return Done{};
  return unlike_ours(key, found, wanted ? std::to_string(*wanted) : "none");
}

std::optional<std::int64_t> integer_at(const Value& config, const std::string& key) {
  const Value* found = config.find(key);
  return found && found->integer() ? std::optional(*found->integer()) : std::nullopt;
}

/// Checks the rotary positions, which newer libraries put together, and sets their base.
Status take_rotation(const Value& config, Value& model) {
  const Value* rotation = config.find("rope_parameters");
  if (!rotation || *rotation == Value()) return Done{};
  if (!rotation->map()) return unlike_ours("rope_parameters", rotation, "a table");
  for (const auto& entry : *rotation->map()) {
    const std::string key = "rope_parameters." + entry.key;
    if (entry.key == "rope_type" || entry.key == "type") {
      if (!entry.value.text() || *entry.value.text() != "default")
        return unlike_ours(key, &entry.value, "\"default\"");
    } else if (entry.key == "partial_rotary_factor") {
      if (entry.value.number() != 1) return unlike_ours(key, &entry.value, "1");
    } else if (entry.key == "rope_theta") {
      const Value* other = config.find("rope_theta");
      if (other && other->number() != entry.value.number())
        return unlike_ours(key, &entry.value, "that of rope_theta, " + to_json(*other));
      model.set("rope_theta", entry.value);
    } else {
      return unlike_ours(key, &entry.value, "no such key");
    }
  }
  return Done{};
}

/// Checks that nothing in config.json asks for another function than ours.
Status check_foreign(const Value& config, const Family& family) {
  const auto is_in = [](const auto& keys, std::string_view key, auto member) {
    return std::ranges::count(keys, key, member) > 0;
  };
  if (!config.map()) return Error{"found " + to_json(config) + ", wanted a table"};
  for (const auto& entry : *config.map()) {
    const bool is_known = is_in(family.keys, entry.key, &Renamed::theirs) ||
                          is_in(family.fixed, entry.key, &Fixed::key) ||
                          is_in(always_fixed, entry.key, &Fixed::key) ||
                          is_in(idle_keys, entry.key, std::identity());
    if (!is_known) return unlike_ours(entry.key, &entry.value, "no such key");
  }
  for (const auto& fixed : family.fixed)
    if (auto good = check_fixed(config, fixed); !good) return good;
  for (const auto& fixed : always_fixed)
    if (auto good = check_fixed(config, fixed); !good) return good;
  return Done{};
}

/// Checks the sizes that others determine.
Status check_sizes(const Value& config, const Value& model) {
  const auto width = integer_at(model, "width");
  const auto heads = integer_at(model, "heads");
  if (!width || !heads || *heads < 1) return Done{};  // The model's own check says what is wrong.
  if (auto good = check_number(config, "head_dim", *width / *heads); !good) return good;
  const bool is_llama = *model.find("kind")->text() == "llama";
  return check_number(config, "n_inner", is_llama ? std::nullopt : std::optional(4 * *width));
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
    for (const auto& [theirs, ours, otherwise] : family->keys)
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
  for (const auto& family : families) {
    if (name != family.kind) continue;
    if (auto ours = check_foreign(config, family); !ours) return ours.error();
    Value model = renamed(config, family.kind, family.keys);
    if (auto ours = check_sizes(config, model); !ours) return ours.error();
    if (auto taken = take_rotation(config, model); !taken) return taken.error();
    return model;
  }
  return Error{"model_type is \"" + name +
               "\"; gpt2 and llama are known: for others give --config with a [model] section"};
}

}  // namespace troupe::config
