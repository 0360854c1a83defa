#include "models/description/hugging_face.h"

#include <algorithm>

#include "models/description/read_steps.h"

namespace troupe::models {
namespace {

/// Divides "a.b | c" at the bars.
std::vector<std::string> alternatives(std::string_view text) {
  constexpr std::string_view bar = " | ";
  std::vector<std::string> paths;
  while (true) {
    const auto at = text.find(bar);
    paths.emplace_back(text.substr(0, at));
    if (at == text.npos) return paths;
    text.remove_prefix(at + bar.size());
  }
}

/// Reads one entry of `huggingface`.
class EntryReader {
 public:
  EntryReader(std::string path, const std::vector<Option>& options, std::span<const Preset> presets,
              FaultSink& sink)
      : path_(std::move(path)), options_(options), presets_(presets), sink_(sink) {}

  HuggingFace read(const Value& entry) {
    if (!entry.map()) {
      fail(entry, "an entry is a table: { types, keys, ... }");
      return {};
    }
    sink_.check_keys(entry, path_,
                     {"library", "types", "prefixes", "renamed", "leave", "copies", "keys", "fixed",
                      "must", "harmless", "usual", "needs"});
    read_types(entry);
    if (sink_.fault) return {};
    texts(entry, "prefixes", made_.prefixes);
    texts(entry, "leave", made_.leave);
    for (const auto& pattern : made_.leave)
      if (pattern.find('*', 1) != pattern.npos)
        fail(entry, "a name in leave has a '*' at its beginning only: \"*.attn.bias\"");
    read_names(entry, "copies", "the name of a tensor for each copy", made_.copies);
    read_names(entry, "renamed", "our word for each of theirs", made_.renamed);
    read_harmless(entry);
    read_keys(entry);
    read_fixed(entry);
    read_must(entry);
    read_formulas(entry, "usual", made_.usual);
    read_formulas(entry, "needs", made_.needs);
    return std::move(made_);
  }

 private:
  void fail(const Value& at, std::string what) { sink_.fail(at, path_, std::move(what)); }

  void read_types(const Value& entry) {
    const Value* library = entry.find("library");
    const Value* types = entry.find("types");
    if (library) {
      if (!library->text() || *library->text() != "timm")
        return fail(*library, "library is \"timm\"; leave it out for transformers");
      if (types) return fail(*types, "with library the types are the presets; leave types out");
      if (presets_.empty()) return fail(*library, "timm names a preset, but there is none");
      made_.library = HuggingFace::Library::timm;
      for (const auto& preset : presets_) made_.types.push_back({preset.name, "", preset.options});
      return;
    }
    if (!types || !types->map() || types->map()->empty())
      return fail(entry,
                  "types is a table of model types and their classes: { gpt2 = "
                  "\"GPT2LMHeadModel\" }");
    for (const auto& type : *types->map()) {
      if (!type.value.text()) return fail(type.value, "the class of a type is a text");
      made_.types.push_back({type.key, *type.value.text()});
    }
  }

  void texts(const Value& entry, const std::string& key, std::vector<std::string>& into) {
    const Value* list = entry.find(key);
    if (!list || sink_.fault) return;
    const bool is_list = list->list() && std::ranges::all_of(*list->list(), [](const Value& item) {
                           return item.text() != nullptr;
                         });
    if (!is_list) return fail(*list, key + " is a list of texts");
    for (const auto& item : *list->list()) into.push_back(*item.text());
  }

  /// Reads a list of keys, or a table with such a list for each type.
  void read_harmless(const Value& entry) {
    const Value* harmless = sink_.fault ? nullptr : entry.find("harmless");
    if (!harmless) return;
    const auto add = [&](const Value& table, const std::string& key, const std::string& type) {
      std::vector<std::string> all;
      texts(table, key, all);
      for (auto& path : all) made_.harmless.emplace_back(std::move(path), type);
    };
    if (!harmless->map()) return add(entry, "harmless", "");
    for (const auto& type : *harmless->map())
      if (is_type(*harmless, type.key)) add(*harmless, type.key, type.key);
  }

  /// Returns a table of the entry, or null.
  const Value* table(const Value& entry, const std::string& key) {
    const Value* found = sink_.fault ? nullptr : entry.find(key);
    if (found && !found->map()) {
      fail(*found, key + " is a table");
      return nullptr;
    }
    return found;
  }

  /// Reads a table of texts.
  void read_names(const Value& entry, const std::string& key, const std::string& what,
                  std::vector<std::pair<std::string, std::string>>& into) {
    const Value* names = table(entry, key);
    if (!names) return;
    for (const auto& [theirs, ours, position] : *names->map()) {
      if (!ours.text()) return fail(ours, key + " has " + what);
      into.emplace_back(theirs, *ours.text());
    }
  }

  bool is_option(const Value& at, const std::string& name) {
    if (std::ranges::count(options_, name, &Option::name) > 0) return true;
    fail(at, "the description has no option '" + name + "'");
    return false;
  }

  bool is_type(const Value& at, const std::string& name) {
    if (std::ranges::count(made_.types, name, &HuggingFace::Type::name) > 0) return true;
    fail(at, "'" + name + "' is none of the types");
    return false;
  }

  void read_keys(const Value& entry) {
    const Value* rows = sink_.fault ? nullptr : entry.find("keys");
    if (!rows) return;
    if (!rows->list()) return fail(*rows, "keys is a list of rows [option, key, absent, types]");
    for (const auto& row : *rows->list()) read_key(row);
  }

  void read_key(const Value& row) {
    constexpr std::size_t most = 4;
    const auto* items = row.list();
    if (!items || items->size() < 2 || items->size() > most || !(*items)[0].text() ||
        !(*items)[1].text())
      return fail(row,
                  "a row is [option, key], [option, key, value if the key is absent] or [option, "
                  "key, value, types or texts]");
    HuggingFace::Key key{.option = *(*items)[0].text(),
                         .paths = alternatives(*(*items)[1].text()),
                         .absent = items->size() > 2 ? (*items)[2] : Value(),
                         .types = {},
                         .texts = {}};
    if (!is_option(row, key.option)) return;
    if (items->size() == most) read_last(items->back(), key);
    made_.keys.push_back(std::move(key));
  }

  /// Reads a type, a list of types, or a table of texts.
  void read_last(const Value& last, HuggingFace::Key& key) {
    if (last.map()) {
      for (const auto& entry : *last.map()) key.texts.emplace_back(entry.key, entry.value);
      return;
    }
    const Value::List one{last};
    for (const auto& type : last.list() ? *last.list() : one) {
      if (!type.text()) return fail(last, "a row ends with a type, types or a table of texts");
      if (!is_type(last, *type.text())) return;
      key.types.push_back(*type.text());
    }
  }

  void read_fixed(const Value& entry) {
    const Value* fixed = table(entry, "fixed");
    if (!fixed) return;
    for (const auto& [type, options, position] : *fixed->map()) {
      if (!is_type(*fixed, type)) return;
      if (!options.map()) return fail(options, "fixed has a table of options for a type");
      for (const auto& option : *options.map())
        if (!is_option(option.value, option.key)) return;
      made_.fixed.emplace_back(type, options);
    }
  }

  /// A text is itself, or in braces an expression.
  std::optional<Formula> formula(const Value& value) {
    const auto* text = value.text();
    const bool is_expression = text && text->starts_with('{') && text->ends_with('}');
    auto parsed = is_expression ? Formula::parse(text->substr(1, text->size() - 2),
                                                 Formula::Texts::expressions)
                                : Formula::parse(value, Formula::Texts::templates);
    if (parsed) return *std::move(parsed);
    fail(value, parsed.error().text);
    return {};
  }

  void read_must(const Value& entry) {
    const Value* must = table(entry, "must");
    if (!must) return;
    for (const auto& [path, value, position] : *must->map()) {
      HuggingFace::Must one{path, {}};
      const Value::List single{value};
      for (const auto& item : value.list() ? *value.list() : single)
        if (auto wanted = formula(item)) one.values.push_back(*std::move(wanted));
      made_.must.push_back(std::move(one));
    }
  }

  /// Reads a table of options with a formula each.
  void read_formulas(const Value& entry, const std::string& key,
                     std::vector<std::pair<std::string, Formula>>& into) {
    const Value* found = table(entry, key);
    if (!found) return;
    for (const auto& [option, value, position] : *found->map()) {
      if (!is_option(value, option)) return;
      auto parsed = Formula::parse(value, Formula::Texts::expressions);
      if (!parsed) return fail(value, parsed.error().text);
      into.emplace_back(option, *std::move(parsed));
    }
  }

  std::string path_;
  const std::vector<Option>& options_;
  std::span<const Preset> presets_;
  FaultSink& sink_;
  HuggingFace made_;
};

}  // namespace

bool HuggingFace::has(const Key& key, std::string_view type) {
  return key.types.empty() || std::ranges::count(key.types, type) > 0;
}

std::optional<Fault> read_hugging_face(const Value& tree, const std::vector<Option>& options,
                                       std::span<const Preset> presets,
                                       std::vector<HuggingFace>& into) {
  const Value* entries = tree.find("huggingface");
  if (!entries) return {};
  FaultSink sink;
  if (!entries->list()) sink.fail(*entries, "huggingface", "huggingface is a list of tables");
  for (std::size_t i = 0; !sink.fault && i < entries->list()->size(); ++i)
    into.push_back(EntryReader("huggingface[" + std::to_string(i) + "]", options, presets, sink)
                       .read((*entries->list())[i]));
  return sink.fault;
}

}  // namespace troupe::models
