#include "config/huggingface/config_json.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "config/huggingface/families.h"
#include "core/json.h"

namespace troupe::config {
namespace {

using models::HuggingFace;

/// Keys that change no result, for every type: names, tokens, drops that training chooses itself,
/// and how results are returned.
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
                                          "hidden_dropout",
                                          "classifier_dropout",
                                          "task_specific_params",
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
                                          "is_decoder",
                                          "chunk_size_feed_forward",
                                          "_attn_implementation_autoset"};
/// Keys that must be absent or have this value, for every type.
struct Always {
  std::string_view key;
  std::string_view value;  // As JSON.
};
constexpr Always always[] = {
    {"quantization_config", "null"}, {"auto_map", "null"}, {"is_encoder_decoder", "false"}};

Error unlike_ours(const std::string& key, const Value& found, const std::string& wanted) {
  return Error{key + ": found " + to_json(found) + ", wanted " + wanted +
               ": with it the model computes something that this program does not"};
}

/// Reads one config.json of a known type.
class Reader {
 public:
  Reader(const Value& config, const Family& family, const std::vector<std::string>& accepted)
      : config_(config), family_(family), accepted_(accepted) {
    for (const auto& key : family.entry->keys)
      if (HuggingFace::has(key, family.type))
        known_.insert(known_.end(), key.paths.begin(), key.paths.end());
    for (const auto& must : family.entry->must) known_.push_back(must.path);
    for (const auto& [key, type] : family.entry->harmless)
      if (type.empty() || type == family.type) known_.push_back(key);
    for (const auto key : idle_keys) known_.emplace_back(key);
    for (const auto& [key, value] : always) known_.emplace_back(key);
    if (family.is_of_timm()) known_.emplace_back("architecture");
  }

  Result<Value> read() {
    if (!config_.map()) return Error{"found " + to_json(config_) + ", wanted a table"};
    if (auto good = check_names(config_, ""); !good) return good.error();
    for (const auto& [key, value] : always) {
      // An entry may want another value.
      if (std::ranges::count(family_.entry->must, key, &HuggingFace::Must::path) > 0) continue;
      const Value* found = config_.find(key);
      if (found && !is_accepted(std::string(key)) && to_json(*found) != value)
        return unlike_ours(std::string(key), *found, std::string(value));
    }
    model_.set("kind", family_.kind->name());
    if (family_.options.map())
      for (const auto& option : *family_.options.map()) model_.set(option.key, option.value);
    for (const auto& key : family_.entry->keys)
      if (HuggingFace::has(key, family_.type))
        if (auto good = take(key); !good) return good.error();
    if (const Value* fixed = fixed_of(family_))
      for (const auto& option : *fixed->map()) model_.set(option.key, option.value);
    if (auto good = check_needs(); !good) return good.error();
    take_usual();
    if (auto good = check_musts(); !good) return good.error();
    return std::move(model_);
  }

 private:
  bool is_accepted(const std::string& path) const {
    return std::ranges::any_of(accepted_, [&](const std::string& key) {
      return path == key || path.starts_with(key + ".");
    });
  }

  /// Refuses keys that nobody knows, also those in tables.
  Status check_names(const Value& table, const std::string& before) const {
    for (const auto& entry : *table.map()) {
      const auto path = before + entry.key;
      if (is_accepted(path) || std::ranges::count(known_, path) > 0) continue;
      const bool has_known = std::ranges::any_of(
          known_, [&](const auto& known) { return known.starts_with(path + "."); });
      if (!has_known) return unlike_ours(path, entry.value, "no such key");
      if (entry.value.is_null()) continue;
      if (!entry.value.map()) return unlike_ours(path, entry.value, "a table");
      if (auto good = check_names(entry.value, path + "."); !good) return good;
    }
    return Done{};
  }

  Status take(const HuggingFace::Key& key) {
    const Value* found = nullptr;
    std::string found_at;
    for (const auto& path : key.paths) {
      const Value* here = at_path(config_, path);
      if (!here) continue;
      if (found && !found->is_null() && !here->is_null() && !same(*found, *here))
        return unlike_ours(found_at, *found, "that of " + path + ", " + to_json(*here));
      if (found && !found->is_null()) continue;
      found = here;
      found_at = path;
    }
    if (!found && key.absent.is_null() && model_.find(key.option)) return Done{};
    const auto& option = option_of(family_, key.option);
    Value value = found ? *found : key.absent;
    if (const auto* sizes = value.list(); sizes && !sizes->empty() && is_one_number(option)) {
      if (!std::ranges::all_of(*sizes,
                               [&](const Value& size) { return same(size, sizes->front()); }))
        return unlike_ours(found_at, value, "equal sizes");
      value = Value(sizes->front());
    }
    // The default of some options means that theirs is not there.
    if (found && !found->is_null()) stated_.push_back(key.option);
    if (found && found->is_null())
      value = option.is_later || has_usual(key.option) ? option.fallback : Value();
    if (value.is_null())
      return Error{key.paths.front() + ": found nothing, wanted the value of model." + key.option};
    if (found && !key.texts.empty()) {
      const auto text = std::ranges::find_if(
          key.texts, [&](const auto& one) { return value.text() && one.first == *value.text(); });
      if (text == key.texts.end()) return unlike_ours(found_at, value, "one of " + texts_of(key));
      value = text->second;
    }
    if (found && option.type == models::Option::Type::choice && !fits(option, value))
      return unlike_ours(found_at, value, "one of " + choices_of(option));
    model_.set(key.option, std::move(value));
    return Done{};
  }

  static bool is_one_number(const models::Option& option) {
    return option.type == models::Option::Type::integer ||
           option.type == models::Option::Type::number;
  }

  bool has_usual(const std::string& option) const {
    return std::ranges::count(family_.entry->usual, option,
                              &std::pair<std::string, models::Formula>::first) > 0;
  }

  static std::string texts_of(const HuggingFace::Key& key) {
    std::string all;
    for (const auto& [text, value] : key.texts) all += (all.empty() ? "" : ", ") + text;
    return all;
  }

  static std::string choices_of(const models::Option& option) {
    std::string all;
    for (const auto& text : option.among) all += (all.empty() ? "" : ", ") + text;
    return all;
  }

  /// Returns the names of formulas for such options, with the type.
  models::Names names_of(const Value& model) const {
    auto complete = models::complete(family_.kind->options(), model);
    auto names = family_.kind->names_of(complete ? *complete : model);
    names.add("model_type", family_.type);
    return names;
  }

  Status check_needs() const {
    const auto with = names_of(model_);
    for (const auto& [option, formula] : family_.entry->needs) {
      const auto needed = formula.evaluate(with);
      if (!needed) return within("model." + option, needed.error());
      if (!needed->boolean() || !*needed->boolean() || std::ranges::count(stated_, option) > 0)
        continue;
      const auto key = std::ranges::find(family_.entry->keys, option, &HuggingFace::Key::option);
      return Error{key->paths.front() + ": found nothing, wanted the value of model." + option};
    }
    return Done{};
  }

  /// Later options that say what the default means anyway get the default, so that the recipe of
  /// the model is the one that it had before.
  void take_usual() {
    for (const auto& [name, formula] : family_.entry->usual) {
      const auto& option = option_of(family_, name);
      const Value* value = model_.find(name);
      if (!option.is_later || !value) continue;
      Value otherwise = model_;
      otherwise.set(name, option.fallback);
      const auto usual = formula.evaluate(names_of(otherwise));
      if (usual && same(*usual, *value)) model_ = std::move(otherwise);
    }
  }

  Status check_musts() const {
    auto with = names_of(model_);
    for (const auto& must : family_.entry->must) {
      const Value* found = at_path(config_, must.path);
      if (!found || is_accepted(must.path)) continue;
      const Value::List single{*found};
      const auto& items = found->list() ? *found->list() : single;
      for (std::size_t i = 0; i < items.size(); ++i) {
        with.add("i", static_cast<std::int64_t>(i));
        if (auto good = check_must(must, items[i], with); !good) return good;
      }
    }
    return Done{};
  }

  static Status check_must(const HuggingFace::Must& must, const Value& found,
                           const models::Names& with) {
    std::string wanted;
    for (const auto& formula : must.values) {
      const auto value = formula.evaluate(with);
      if (!value) return within(must.path, value.error());
      if (same(*value, found)) return Done{};
      wanted += (wanted.empty() ? "" : " or ") + to_json(*value);
    }
    return unlike_ours(must.path, found, wanted);
  }

  const Value& config_;
  const Family& family_;
  const std::vector<std::string>& accepted_;
  std::vector<std::string> known_;   // Paths.
  std::vector<std::string> stated_;  // Options that config.json gives.
  Value model_;
};

}  // namespace

Result<Value> model_of_hugging_face(std::span<const models::ModelKind> kinds, const Value& config,
                                    const std::vector<std::string>& accepted) {
  if (const Value* own = config.find(own_key); own && own->map()) {
    const Value* kind = own->find("kind");
    if (kind && kind->text()) return *own;
    return Error{std::string(own_key) + ": found no \"kind\" of a model"};
  }
  const bool is_of_timm = !config.find("model_type") && config.find("architecture");
  const std::string key = is_of_timm ? "architecture" : "model_type";
  const Value* type = config.find(key);
  const std::string name = type && type->text() ? *type->text() : "";
  std::string known;
  for (const auto& family : families(kinds)) {
    if (family.is_of_timm() != is_of_timm) continue;
    if (name == family.type) return Reader(config, family, accepted).read();
    known += (known.empty() ? "" : ", ") + family.type;
  }
  return Error{key + " is \"" + name + "\"; " + known +
               " are known: for others give --config with a [model] section"};
}

}  // namespace troupe::config
