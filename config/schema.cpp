#include "config/schema.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>
#include <variant>

#include "config/keys.h"
#include "config/model_kinds.h"
#include "config/run_config.h"
#include "config/toml/toml.h"
#include "core/units.h"

namespace troupe::config {
namespace {

Type type_of(const models::Option& option) {
  switch (option.type) {
    // The data can give the size of the vocabulary too.
    case models::Option::Type::integer:
      return option.name == "vocab" ? Type::count_or_auto : Type::integer;
    case models::Option::Type::number:
      return Type::number;
    case models::Option::Type::boolean:
      return Type::boolean;
    case models::Option::Type::choice:
      return Type::choice;
    case models::Option::Type::text:
      return Type::text;
    case models::Option::Type::integers:
      return Type::integers;
  }
  return Type::text;
}

std::vector<Key> model_keys(std::span<const models::ModelKind> of_models) {
  std::vector<Key> keys;
  std::vector<std::string_view> kinds;
  for (const auto& kind : of_models) kinds.emplace_back(kind.name());
  for (const auto& kind : of_models)
    for (const auto& preset : kind.presets()) kinds.emplace_back(preset.name);
  keys.push_back({.name = "model.kind",
                  .type = Type::choice,
                  .presence = Key::Presence::required,
                  .choices = std::move(kinds),
                  .half = Half::recipe,
                  .help = "Model architecture. A name such as resnet50 stands for a kind with some "
                          "of its options given. A path that ends in .toml, relative to the file "
                          "that names it, is the description of a model of your own."});
  keys.push_back({.name = "model.from",
                  .type = Type::text,
                  .half = Half::recipe,
                  .help = "In place of kind: a folder as Hugging Face saves models, "
                          "relative to the file that names it. Its config.json gives the options "
                          "that are not stated here, and its weights are model.init. A folder "
                          "with a model that this program would compute differently is refused."});
  keys.push_back({.name = "model.accept",
                  .type = Type::texts,
                  .half = Half::recipe,
                  .help = "With from: keys of config.json whose values are not checked, such as "
                          "[\"rope_parameters.factor\"]. For keys that change no result."});
  for (const auto& kind : of_models)
    for (const auto& option : kind.options()) {
      keys.push_back({.name = "model." + option.name,
                      .type = type_of(option),
                      .presence = option.fallback.is_null() ? Key::Presence::required
                                                            : Key::Presence::optional,
                      .fallback = option.fallback,
                      .least = option.least,
                      .most = option.most,
                      .choices = {option.among.begin(), option.among.end()},
                      .half = Half::recipe,
                      .help = option.help,
                      .when = {"model.kind", {kind.name()}},
                      .is_later = option.is_later});
    }
  keys.push_back({.name = "model.lora.rank",
                  .least = 1,
                  .most = 65536,
                  .half = Half::recipe,
                  .help = "Rank of the additions. Larger ranks have more parameters."});
  keys.push_back({.name = "model.lora.alpha",
                  .type = Type::number,
                  .least = 1e-9,
                  .most = 1e6,
                  .half = Half::recipe,
                  .help = "The additions count alpha / rank times. Default: the rank."});
  keys.push_back({.name = "model.lora.rate",
                  .type = Type::number,
                  .most = 0.99,
                  .half = Half::recipe,
                  .help = "Dropout of what the additions read. Default: none."});
  keys.push_back({.name = "model.lora.match",
                  .type = Type::texts,
                  .half = Half::recipe,
                  .help = "Patterns over the names of projections: \"*.c_attn\"."});
  keys.push_back({.name = "model.loss.ignore",
                  .least = -2147483648.0,
                  .most = 2147483647,
                  .half = Half::recipe,
                  .help = "The target that does not count, such as -100. Every other target weighs "
                          "the same within a step."});
  keys.push_back(
      {.name = "model.loss.smoothing",
       .type = Type::number,
       .most = 1,
       .half = Half::recipe,
       .help = "Label smoothing in training: the share of a target's weight that all classes get, "
               "equally much each."});
  keys.push_back(
      {.name = "model.loss.z",
       .type = Type::number,
       .most = 1,
       .half = Half::recipe,
       .help = "The weight of logsumexp(logits)^2 in the loss of training, which keeps logits from "
               "drifting, such as 1e-4."});
  keys.push_back({.name = "model.init",
                  .type = Type::text,
                  .fallback = "random",
                  .half = Half::recipe,
                  .help = "Initial weights: \"random\", \"run:NAME\" or \"run:NAME@best\" for the "
                          "newest or the best "
                          "checkpoint of a run in runs/, or a .safetensors file, or a folder "
                          "(\"./gpt2\") with such weights; with the tensor "
                          "names of Hugging Face (gpt2, llama), "
                          "timm (vit) or torchvision (resnet)."});
  return keys;
}

void add_other_keys(std::vector<Key>& keys) {
  add_keys(keys, RunConfig::Data::fields());
  add_keys(keys, RunConfig::Batch::fields());
  add_keys(keys, optimizer_fields());
  add_keys(keys, RunConfig::Precision::fields());
  add_keys(keys, staleness_fields());
  add_keys(keys, RunConfig::Pipeline::fields());
  add_keys(keys, RunConfig::Parallel::fields());
  add_keys(keys, RunConfig::Elastic::fields());
  add_keys(keys, RunConfig::Checkpoint::fields());
  add_keys(keys, RunConfig::Train::fields());
  add_keys(keys, RunConfig::Sample::fields());
  add_keys(keys, RunConfig::Log::fields());
  add_keys(keys, RunConfig::Limits::fields());
}

std::string bounds(const Key& key) {
  if (bound_is_untold(key)) return "of at least " + number_text(key.least);
  return "from " + number_text(key.least) + " to " + number_text(key.most);
}

}  // namespace

Schema::Schema() {
  add_keys(keys_, RunConfig::fields());
  for (auto& key : model_keys(model_kinds())) keys_.push_back(std::move(key));
  add_other_keys(keys_);
}

Schema::Schema(models::ModelKind own) : own_(std::move(own)) {
  add_keys(keys_, RunConfig::fields());
  for (auto& key : model_keys({&*own_, 1})) keys_.push_back(std::move(key));
  keys_.push_back({.name = "model.description",
                   .type = Type::description,
                   .presence = Key::Presence::required,
                   .half = Half::recipe,
                   .help = "The description of the model, as its file says."});
  add_other_keys(keys_);
}

std::vector<const Key*> Schema::rows(std::string_view name) const {
  std::vector<const Key*> found;
  for (const auto& key : keys_)
    if (key.name == name) found.push_back(&key);
  return found;
}

const Value& Schema::decider(const Condition& condition, const Value& tree) const {
  const Value* written = value_at(tree, condition.key);
  return written ? *written : rows(condition.key).front()->fallback;
}

bool Schema::applies(const Key& key, const Value& tree) const {
  if (key.when.key.empty()) return true;
  const auto* said = decider(key.when, tree).text();
  const auto& values = key.when.values;
  return said && std::find(values.begin(), values.end(), *said) != values.end();
}

const Key* Schema::find(std::string_view name, const Value& tree) const {
  for (const auto* key : rows(name))
    if (applies(*key, tree)) return key;
  return nullptr;
}

bool Schema::is_table(std::string_view name) const {
  return std::any_of(keys_.begin(), keys_.end(), [&](const Key& key) {
    return key.name.size() > name.size() && key.name.starts_with(name) &&
           key.name[name.size()] == '.';
  });
}

std::vector<std::string_view> Schema::names_in(std::string_view table, const Value& tree) const {
  const std::size_t skipped = table.empty() ? 0 : table.size() + 1;
  std::vector<std::string_view> names;
  for (const auto& key : keys_) {
    if (!applies(key, tree)) continue;
    if (!table.empty() && !(key.name.starts_with(table) && key.name.size() > table.size() &&
                            key.name[table.size()] == '.'))
      continue;
    const auto name = std::string_view(key.name).substr(0, key.name.find('.', skipped));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string_view Schema::help_of(std::string_view table) const {
  for (const auto& section : sections())
    if (section.name == table) return section.help;
  return {};
}

const Schema& schema() {
  static const Schema all;
  return all;
}

std::shared_ptr<const Schema> schema_for(const Value& tree) {
  const Value* description = value_at(tree, "model.description");
  if (description) {
    auto read = models::ModelKind::read(*description);
    if (auto* kind = std::get_if<models::ModelKind>(&read))
      return std::make_shared<const Schema>(std::move(*kind));
  }
  return {std::shared_ptr<const void>(), &schema()};  // It lives as long as the program.
}

bool bound_is_untold(const Key& key) { return key.most >= 1e6; }

std::string number_text(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  return static_cast<double>(whole) == number ? std::to_string(whole) : to_toml(Value(number));
}

std::string wanted(const Key& key) {
  switch (key.type) {
    case Type::integer:
      return "an integer " + bounds(key);
    case Type::number:
      return "a number " + bounds(key);
    case Type::boolean:
      return "true or false";
    case Type::switches:
      return "true, false, or a list of these such as [true, false]";
    case Type::text:
      return "a string";
    case Type::choice: {
      std::string text = "one of ";
      for (const auto choice : key.choices)
        text += (choice == key.choices.front() ? "" : ", ") + std::string(choice);
      return text;
    }
    case Type::texts:
      return "a list of strings";
    case Type::integers:
      return "a list of integers " + bounds(key);
    case Type::numbers:
      return "a list of " + std::to_string(key.length) + " numbers " + bounds(key);
    case Type::duration:
      return "a duration of at least \"" +
             duration_text(std::chrono::nanoseconds(static_cast<std::int64_t>(key.least))) +
             "\", such as \"5m\"";
    case Type::interval:
      return "\"100 steps\", or a duration such as \"5m\"";
    case Type::range:
      return "the fewest and the most " + bounds(key) + ", such as \"1:8\"";
    case Type::count_or_auto:
      return "an integer " + bounds(key) + ", or \"auto\"";
    case Type::bytes_or_auto:
      return "a size of at least \"" + bytes_text(static_cast<std::int64_t>(key.least)) +
             "\", such as \"2GiB\", or \"auto\"";
    case Type::stages:
      return "an integer " + bounds(key) + ", \"auto\", or boundaries such as [0, 3, 6]";
    case Type::description:
      return "a table, the description of a model";
    case Type::groups:
      return "a list of tables";
  }
  return "?";
}

}  // namespace troupe::config
