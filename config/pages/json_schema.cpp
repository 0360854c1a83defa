#include <algorithm>

#include "config/keys.h"
#include "config/model_kinds.h"
#include "config/pages/render.h"
#include "config/schema.h"

namespace troupe::config {
namespace {

using Map = Value::Map;

Value object(std::initializer_list<std::pair<std::string_view, Value>> entries) {
  Value made = Map{};
  for (const auto& [key, value] : entries) made.set(std::string(key), value);
  return made;
}

/// Writes a whole number without a fraction, which every JSON reader accepts as an integer.
Value bound(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  return static_cast<double>(whole) == number ? Value(whole) : Value(number);
}

Value numeric(const Key& key, std::string_view type) {
  return object({{"type", type}, {"minimum", bound(key.least)}, {"maximum", bound(key.most)}});
}

Value pattern(std::string_view regular_expression) {
  return object({{"type", "string"}, {"pattern", regular_expression}});
}

Value any_of(Value::List alternatives) { return object({{"anyOf", std::move(alternatives)}}); }

constexpr std::string_view duration_pattern = "^[0-9]+(\\.[0-9]+)? ?(ns|us|ms|s|m|h|d)$";
constexpr std::string_view positive_duration_pattern =
    "^(?=.*[1-9])[0-9]+(\\.[0-9]+)? ?(ns|us|ms|s|m|h|d)$";

/// Returns the schema of a text. These keys have rules of their own, which agreement.cpp checks.
Value text_form(std::string_view key) {
  if (key == "name") return pattern("^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$");
  if (key == "model.init") return pattern("^(random|run:.+|.*\\.safetensors)$");
  if (key == "train.export") return pattern("\\.safetensors$");
  if (key == "checkpoint.dir") return pattern("^([^{}]|\\{name\\})+$");
  return object({{"type", "string"}});
}

/// Returns the schema of the layers at which stages begin, and of the number of layers.
Value boundaries(const Key& key) {
  const Value later = object({{"type", "integer"}, {"minimum", 1}, {"maximum", 1'000'000}});
  return object({{"type", "array"},
                 {"prefixItems", Value::List{object({{"const", 0}})}},
                 {"items", later},
                 {"minItems", 2},
                 {"maxItems", bound(key.most + 1)},
                 {"uniqueItems", true}});
}

Value described(const Key& key);

/// Returns the schema of a group of parameters.
Value group_form() {
  Value properties = Map{};
  Value::List required;
  for (const auto& key : group_keys()) {
    properties.set(key.name, described(key));
    if (key.presence == Key::Presence::required) required.push_back(key.name);
  }
  return object({{"type", "object"},
                 {"properties", std::move(properties)},
                 {"required", std::move(required)},
                 {"additionalProperties", false}});
}

Value form(const Key& key) {
  const Value automatic = object({{"const", "auto"}});
  switch (key.type) {
    case Type::integer:
      return numeric(key, "integer");
    case Type::number:
      return numeric(key, "number");
    case Type::boolean:
      return object({{"type", "boolean"}});
    case Type::switches: {
      const Value either = object({{"type", "boolean"}});
      return any_of({either, object({{"type", "array"}, {"items", either}, {"minItems", 1}})});
    }
    case Type::text:
      return text_form(key.name);
    case Type::choice: {
      const Value words = object({{"enum", Value::List(key.choices.begin(), key.choices.end())}});
      return key.name == "model.kind" ? any_of({words, pattern("\\.toml$")}) : words;
    }
    case Type::texts:
      return object({{"type", "array"},
                     {"items", object({{"type", "string"}, {"minLength", 1}})},
                     {"minItems", 1}});
    case Type::integers:
      return object({{"type", "array"}, {"items", numeric(key, "integer")}, {"minItems", 1}});
    case Type::numbers: {
      const auto length = static_cast<std::int64_t>(key.length);
      return object({{"type", "array"},
                     {"items", numeric(key, "number")},
                     {"minItems", length},
                     {"maxItems", length}});
    }
    case Type::duration:
      return pattern(key.least > 0 ? positive_duration_pattern : duration_pattern);
    case Type::interval:
      return any_of({pattern("^0*[1-9][0-9]* steps?$"), pattern(positive_duration_pattern)});
    case Type::range:
      return any_of({numeric(key, "integer"), pattern("^[0-9]+(:[0-9]+)?$")});
    case Type::count_or_auto:
      return any_of({numeric(key, "integer"), automatic});
    case Type::bytes_or_auto:
      return any_of({pattern("^[0-9]+(\\.[0-9]+)? ?(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)$"), automatic});
    case Type::stages:
      return any_of({numeric(key, "integer"), automatic, boundaries(key)});
    case Type::description:
      return object({{"type", "object"}});
    case Type::groups:
      return object({{"type", "array"}, {"items", group_form()}});
  }
  return {};
}

Value described(const Key& key) {
  Value made = form(key);
  made.set("description", key.help);
  if (!key.fallback.is_null()) made.set("default", key.fallback);
  return made;
}

/// Writes the schemas of tables, the innermost first.
class Writer {
 public:
  Value table(std::string_view name) const {
    Value made = object({{"type", "object"}});
    if (!name.empty()) made.set("description", schema().help_of(name));
    made.set("properties", properties(name, {}));
    Value::List branches;
    for (const auto kind : kinds_of(name))
      if (Value own = properties(name, kind); !own.map()->empty())
        branches.push_back(
            if_kind(with_presets(name, kind), object({{"properties", std::move(own)}})));
    if (name == "model") branches.push_back(own_model());
    if (branches.empty()) {
      made.set("additionalProperties", false);
    } else {
      made.set("allOf", std::move(branches));
      made.set("unevaluatedProperties", false);
    }
    return made;
  }

  /// Returns the keys that a file needs if it extends no other file.
  Value needed(std::string_view name) const {
    Value::List here = required(name, {});
    Value below = Map{};
    Value::List conditions;
    for (const auto kind : kinds_of(name))
      if (auto keys = required(name, kind); !keys.empty())
        conditions.push_back(if_stated(kind, object({{"required", std::move(keys)}})));
    for (const auto& section : sections())
      if (is_child(section.name, name))
        if (Value inner = needed(section.name); !inner.map()->empty()) {
          here.push_back(section.name);
          below.set(std::string(section.name), std::move(inner));
        }
    Value made = Map{};
    // A folder gives the model in place of a kind.
    if (name == "model" && std::erase(here, Value("kind")) > 0)
      made.set("anyOf", Value::List{object({{"required", Value::List{"kind"}}}),
                                    object({{"required", Value::List{"from"}}})});
    if (!here.empty()) made.set("required", std::move(here));
    if (!below.map()->empty()) made.set("properties", std::move(below));
    if (!conditions.empty()) made.set("allOf", std::move(conditions));
    return made;
  }

 private:
  static bool is_child(std::string_view section, std::string_view of) {
    if (section.empty()) return false;
    const auto dot = section.rfind('.');
    return (dot == section.npos ? std::string_view() : section.substr(0, dot)) == of;
  }
  /// Returns the values of `kind` that mean this kind.
  static Value with_presets(std::string_view section, std::string_view kind) {
    const auto* of_models = section == "model" ? find_model_kind(kind) : nullptr;
    if (!of_models || of_models->presets().empty()) return object({{"const", kind}});
    Value::List names{kind};
    for (const auto& preset : of_models->presets()) names.emplace_back(preset.name);
    return object({{"enum", std::move(names)}});
  }

  /// Limits keys to a kind. If the extended file sets the kind, the keys of all kinds are allowed.
  static Value if_kind(const Value& kind, Value then) {
    const Value chosen = object({{"kind", kind}});
    return object({{"if", object({{"properties", chosen}})}, {"then", std::move(then)}});
  }

  /// Applies only if the file itself states the kind.
  static Value if_stated(std::string_view kind, Value then) {
    const Value chosen = object({{"kind", object({{"const", kind}})}});
    return object({{"if", object({{"properties", chosen}, {"required", Value::List{"kind"}}})},
                   {"then", std::move(then)}});
  }

  /// Allows all keys if the kind is the file of a description, whose options only it knows.
  static Value own_model() {
    const Value is_file = object({{"properties", object({{"kind", pattern("\\.toml$")}})},
                                  {"required", Value::List{"kind"}}});
    return object({{"if", is_file}, {"then", object({{"additionalProperties", true}})}});
  }

  /// Returns whether a key exists only with this kind, or, for an empty kind, with every kind.
  static bool is_for(const Key& key, std::string_view kind) {
    const auto& values = key.when.values;
    if (kind.empty()) return key.when.key.empty();
    return std::find(values.begin(), values.end(), kind) != values.end();
  }

  Value::List required(std::string_view name, std::string_view kind) const {
    Value::List keys;
    for (const auto& key : schema().keys())
      if (key.presence == Key::Presence::required && key.section() == name && is_for(key, kind))
        keys.push_back(key.leaf());
    return keys;
  }

  /// Returns the kinds that determine a table's keys, or none if the table always has all its keys.
  std::vector<std::string_view> kinds_of(std::string_view name) const {
    for (const auto& key : schema().keys())
      if (key.section() == name && !key.when.key.empty())
        return schema().rows(key.when.key).front()->choices;
    return {};
  }

  Value properties(std::string_view name, std::string_view kind) const {
    Value made = Map{};
    for (const auto& key : schema().keys())
      if (key.section() == name && is_for(key, kind))
        made.set(std::string(key.leaf()), described(key));
    for (const auto& section : sections())
      if (kind.empty() && is_child(section.name, name))
        made.set(std::string(section.name.substr(section.name.rfind('.') + 1)),
                 table(section.name));
    return made;
  }
};

}  // namespace

Value json_schema() {
  const Writer writer;
  Value made = object(
      {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A Troupe run"}});
  const Value top = writer.table("");
  for (const auto& entry : *top.map()) made.set(entry.key, entry.value);
  made.find("properties")
      ->set("extends", object({{"type", "string"},
                               {"description",
                                "A configuration file that this file overrides; its path is "
                                "relative to this file."}}));
  made.set("if", object({{"not", object({{"required", Value::List{"extends"}}})}}));
  made.set("then", writer.needed(""));
  return made;
}

}  // namespace troupe::config
