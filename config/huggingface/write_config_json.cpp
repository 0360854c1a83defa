#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/huggingface/config_json.h"
#include "config/huggingface/families.h"
#include "core/json.h"

namespace troupe::config {
namespace {

using models::HuggingFace;

void set_path(Value& config, std::string_view path, Value value) {
  const auto dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (dot == path.npos) {
    config.set(key, std::move(value));
    return;
  }
  Value* inner = config.find(key);
  if (!inner || !inner->map()) inner = &config.set(key, Value::Map{});
  set_path(*inner, path.substr(dot + 1), std::move(value));
}

/// Writes the keys of a type for a model of its kind.
class Writer {
 public:
  Writer(Value model, const Family& family)
      : model_(std::move(model)), family_(family), names_(family.kind->names_of(model_)) {}

  /// Returns whether models of the type compute the same: it has keys for all options that other
  /// types have too, or these have their defaults.
  bool can() const {
    if (family_.is_of_timm()) return has_rest_of_preset();
    const Value* fixed = fixed_of(family_);
    for (const auto& option : family_.kind->options()) {
      const Value* value = model_.find(option.name);
      const Value* wanted = fixed ? fixed->find(option.name) : nullptr;
      if (wanted && (!value || !same(*wanted, *value))) return false;
      if (wanted || !value || has_key(option.name) || !is_known(option.name)) continue;
      if (!same(*value, option.fallback)) return false;
    }
    return true;
  }

  /// Returns how many options differ from the preset that timm means.
  std::int64_t differences() const {
    return std::ranges::count_if(family_.entry->keys,
                                 [&](const auto& key) { return !is_of_preset(key.option); });
  }

  void write(Value& config) const {
    for (const auto& key : family_.entry->keys) {
      const Value* value = model_.find(key.option);
      if (!value || !HuggingFace::has(key, family_.type)) continue;
      // timm takes arguments of a model from the preset, but its number of classes from a key.
      const bool is_argument = key.paths.back().find('.') != std::string::npos;
      if (family_.is_of_timm() && is_argument && is_of_preset(key.option)) continue;
      // The last path is the one that libraries of all versions read.
      if (const auto theirs = theirs_of(key, *value)) set_path(config, key.paths.back(), *theirs);
    }
  }

  /// Writes what differs from a model whose options are all there, which `config` describes.
  void write_changes(Value& config, const Value& before) const {
    for (const auto& key : family_.entry->keys) {
      const Value* value = model_.find(key.option);
      const Value* earlier = before.find(key.option);
      if (!value || !HuggingFace::has(key, family_.type)) continue;
      if (earlier && same(*value, *earlier)) continue;
      const auto there = std::ranges::find_if(
          key.paths, [&](const auto& path) { return at_path(config, path) != nullptr; });
      const auto theirs = theirs_of(key, *value);
      if (theirs || there != key.paths.end())
        set_path(config, there != key.paths.end() ? *there : key.paths.back(),
                 theirs ? *theirs : Value());
    }
  }

 private:
  bool is_of_preset(const std::string& option) const {
    const Value* given = family_.options.find(option);
    const Value* value = model_.find(option);
    return value && same(given ? *given : option_of(family_, option).fallback, *value);
  }
  /// Returns whether the model has what the preset has, where no key says otherwise. What no preset
  /// names, such as dropout, changes no result of a trained model.
  bool has_rest_of_preset() const {
    return std::ranges::all_of(family_.kind->options(), [&](const auto& option) {
      const bool is_named = std::ranges::any_of(family_.kind->presets(), [&](const auto& preset) {
        return preset.options.find(option.name) != nullptr;
      });
      return !is_named || has_key(option.name) || is_of_preset(option.name);
    });
  }

  bool has_key(const std::string& option) const {
    return std::ranges::any_of(family_.entry->keys, [&](const HuggingFace::Key& key) {
      return key.option == option && HuggingFace::has(key, family_.type);
    });
  }
  /// Returns whether the entry says anything about an option.
  bool is_known(const std::string& option) const {
    return std::ranges::count(family_.entry->keys, option, &HuggingFace::Key::option) > 0 ||
           std::ranges::any_of(family_.entry->fixed, [&](const auto& fixed) {
             return fixed.second.find(option) != nullptr;
           });
  }

  /// Returns what stands for a value in config.json, or nothing if the key is left out.
  std::optional<Value> theirs_of(const HuggingFace::Key& key, const Value& value) const {
    for (const auto& [text, ours] : key.texts)
      if (same(ours, value)) return Value(text);
    const auto& option = option_of(family_, key.option);
    if (!same(value, option.fallback)) return typed(option, value);
    // An absent key means the default too, or it is written.
    const bool may_be_absent = same(key.absent, option.fallback);
    const auto usual = std::ranges::find(family_.entry->usual, key.option,
                                         &std::pair<std::string, models::Formula>::first);
    if (usual != family_.entry->usual.end()) {
      auto meant = usual->second.evaluate(names_);
      if (!meant || (meant->is_null() && may_be_absent)) return {};
      return typed(option, *meant);
    }
    if (option.is_later && may_be_absent) return {};
    return typed(option, value);
  }

  /// Checkpoints may hold a whole number as an integer.
  static Value typed(const models::Option& option, const Value& value) {
    const bool is_float = option.type == models::Option::Type::number && value.is_number();
    return is_float ? Value(value.number()) : value;
  }

  Value model_;
  const Family& family_;
  models::Names names_;
};

void write_lines(std::string& out, const Value& value, std::size_t indent) {
  if (!value.map()) {
    const std::string text = to_json(value);
    const bool is_whole =
        value.kind() == Value::Kind::number && text.find_first_of(".en") == std::string::npos;
    out += text + (is_whole ? ".0" : "");
    return;
  }
  const std::string before(indent, ' ');
  out += "{";
  for (const auto& entry : *value.map()) {
    out += (out.ends_with('{') ? "\n  " : ",\n  ") + before + to_json(Value(entry.key)) + ": ";
    write_lines(out, entry.value, indent + 2);
  }
  out += out.ends_with('{') ? "}" : "\n" + before + "}";
}

}  // namespace

std::string config_json_text(const Value& config) {
  std::string out;
  write_lines(out, config, 0);
  return out + "\n";
}

std::optional<Value> hugging_face_like(std::span<const models::ModelKind> kinds, const Value& model,
                                       const Value& came) {
  if (!came.map() || model.find("description")) return {};
  const bool is_of_timm = !came.find("model_type");
  const Value* type = came.find(is_of_timm ? "architecture" : "model_type");
  const auto all = families(kinds);
  const auto family = std::ranges::find_if(all, [&](const Family& one) {
    return type && *type == Value(one.type) && one.is_of_timm() == is_of_timm &&
           *model.find("kind") == Value(one.kind->name());
  });
  if (family == all.end()) return {};
  std::vector<std::string> accepted;
  for (const auto& entry : *came.map()) accepted.push_back(entry.key);
  const auto described = model_of_hugging_face(kinds, came, accepted);
  if (!described) return {};
  const auto before = models::complete(family->kind->options(), *described);
  auto now = models::complete(family->kind->options(), model);
  if (!before || !now) return {};
  const Writer writer(*std::move(now), *family);
  if (!writer.can()) return {};
  Value config = came;
  writer.write_changes(config, *before);
  config.set(std::string(own_key), model);
  return config;
}

Value hugging_face_of(std::span<const models::ModelKind> kinds, const Value& model) {
  const std::string kind = *model.find("kind")->text();
  const auto all = families(kinds);
  const Family* best = nullptr;
  std::optional<Writer> writer;
  for (const auto& family : all) {
    if (family.kind->name() != kind || model.find("description")) continue;
    const auto complete = models::complete(family.kind->options(), model);
    Writer one(complete ? *complete : model, family);
    if (!one.can() || (writer && one.differences() >= writer->differences())) continue;
    best = &family;
    writer.emplace(std::move(one));
    if (!family.is_of_timm()) break;
  }
  Value config;
  if (best && best->is_of_timm()) {
    config.set("architecture", best->type);
    writer->write(config);
    config.set("pretrained_cfg", Value::Map{});
  } else {
    config.set("model_type", best ? best->type : "troupe-" + kind);
    if (best) {
      config.set("architectures", Value::List{best->architecture});
      config.set("torch_dtype", "float32");
      writer->write(config);
    }
  }
  config.set(std::string(own_key), model);
  return config;
}

}  // namespace troupe::config
