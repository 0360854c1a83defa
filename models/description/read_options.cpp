#include "models/description/read_options.h"

#include <algorithm>
#include <array>

#include "core/text.h"

namespace troupe::models {
namespace {

constexpr std::size_t most_options = 256;
constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_help = 400;

/// Words that the language of expressions or the table [model] needs.
constexpr std::array<std::string_view, 18> taken{
    "or",  "and",  "not",     "true",  "false", "none", "if",          "count", "min",
    "max", "sqrt", "ceil_to", "given", "kind",  "init", "description", "loss",  "lora"};

std::optional<Option::Type> type_of(std::string_view word) {
  using enum Option::Type;
  if (word == "integer") return integer;
  if (word == "number") return number;
  if (word == "boolean") return boolean;
  if (word == "choice") return choice;
  if (word == "text") return text;
  if (word == "integers") return integers;
  return {};
}

Fault fault(const Value& at, std::string path, std::string what) {
  return {.at = {at.position, std::move(path)}, .message = std::move(what)};
}

/// Reads one row of `options`.
class RowReader {
 public:
  RowReader(const Value::Entry& entry, std::vector<Option>& into)
      : entry_(entry), path_("options." + entry.key), into_(into) {}

  std::optional<Fault> read() {
    Option option{.name = entry_.key};
    if (!is_name(option.name))
      return fail("'" + option.name.substr(0, longest_name) +
                  "' cannot be the name of an option; use a lower-case word that has no other "
                  "meaning");
    if (std::ranges::count(into_, option.name, &Option::name) > 0)
      return fail("the option '" + option.name + "' is there twice");
    const auto* row = entry_.value.map();
    if (!row) return fail("an option is a table: { type, default, least, most, among, help }");
    if (const Value* type = entry_.value.find("type"))
      if (auto wrong = read_type(*type, option)) return wrong;
    for (const auto& [key, value, position] : *row)
      if (auto wrong = read_key(key, value, option)) return wrong;
    if (option.type == Option::Type::choice && option.among.empty())
      return fail("a choice needs among = [...], a list of texts");
    if (option.help.empty()) return fail("an option needs help = \"...\", one sentence");
    if (!option.fallback.is_null() && !fits(option, option.fallback))
      return fail("the default does not fit the type and the bounds");
    into_.push_back(std::move(option));
    return {};
  }

 private:
  std::optional<Fault> fail(std::string what) const {
    return fault(entry_.value, path_, std::move(what));
  }

  std::optional<Fault> read_type(const Value& type, Option& option) {
    const auto found = type.text() ? type_of(*type.text()) : std::nullopt;
    if (!found) return fail("type is one of integer, number, boolean, choice, text and integers");
    option.type = *found;
    return {};
  }

  std::optional<Fault> read_key(const std::string& key, const Value& value, Option& option) {
    if (key == "type") return {};
    if (key == "default") {
      option.fallback = without_places(value);
    } else if (key == "least" || key == "most") {
      if (!value.is_number()) return fail(key + " is a number");
      (key == "least" ? option.least : option.most) = value.number();
    } else if (key == "help") {
      if (!value.text() || value.text()->size() > longest_help) return fail("help is a sentence");
      option.help = *value.text();
    } else if (key == "among") {
      if (!value.list()) return fail("among is a list of texts");
      for (const auto& item : *value.list()) {
        if (!item.text()) return fail("among is a list of texts");
        option.among.push_back(*item.text());
      }
    } else {
      return fail("an option has no key '" + key +
                  "'; it has type, default, least, most, among and help");
    }
    return {};
  }

  const Value::Entry& entry_;
  std::string path_;
  std::vector<Option>& into_;
};

std::optional<Fault> read_common(const Value& common, std::vector<Option>& into) {
  if (!common.list()) return fault(common, "common", "common is a list of names");
  for (const auto& item : *common.list()) {
    const auto* option = item.text() ? find_common_option(*item.text()) : nullptr;
    if (!option)
      return fault(item, "common",
                   "no option of this name is shared by all descriptions; declare it in options");
    if (std::ranges::count(into, option->name, &Option::name) > 0)
      return fault(item, "common", "the option '" + option->name + "' is there twice");
    into.push_back(*option);
  }
  return {};
}

std::optional<Fault> read_fallbacks(const Value& fallbacks, std::vector<Option>& into) {
  if (!fallbacks.map()) return fault(fallbacks, "fallback", "fallback is a table of defaults");
  for (const auto& [key, value, position] : *fallbacks.map()) {
    const auto option = std::ranges::find(into, key, &Option::name);
    const auto path = "fallback." + key;
    if (option == into.end()) return fault(value, path, "common has no option '" + key + "'");
    if (!fits(*option, value))
      return fault(value, path,
                   "the default does not fit the type and the bounds of '" + key + "'");
    option->fallback = without_places(value);
  }
  return {};
}

/// Reads `model.later`, the names of options that came after the first release.
std::optional<Fault> read_later(const Value& tree, std::vector<Option>& into) {
  const Value* model = tree.find("model");
  const Value* later = model ? model->find("later") : nullptr;
  if (!later) return {};
  if (!later->list()) return fault(*later, "model.later", "later is a list of names of options");
  for (const auto& item : *later->list()) {
    const auto option =
        item.text() ? std::ranges::find(into, *item.text(), &Option::name) : into.end();
    if (option == into.end())
      return fault(item, "model.later", "later names an option that the description lacks");
    if (option->fallback.is_null())
      return fault(item, "model.later",
                   "'" + option->name + "' has no default; an option that came later needs one");
    option->is_later = true;
  }
  return {};
}

}  // namespace

Value without_places(Value value) {
  value.position = {};
  if (auto* list = value.list())
    for (auto& item : *list) item.position = {};
  return value;
}

bool is_name(std::string_view word) {
  if (word.empty() || word.size() > longest_name || word[0] < 'a' || word[0] > 'z') return false;
  if (std::ranges::count(taken, word) > 0) return false;
  return std::ranges::all_of(
      word, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::optional<Fault> read_options(const Value& tree, std::vector<Option>& into) {
  if (const Value* common = tree.find("common"))
    if (auto wrong = read_common(*common, into)) return wrong;
  if (const Value* fallbacks = tree.find("fallback"))
    if (auto wrong = read_fallbacks(*fallbacks, into)) return wrong;
  if (const Value* options = tree.find("options")) {
    if (!options->map()) return fault(*options, "options", "options is a table of tables");
    if (options->map()->size() > most_options)
      return fault(*options, "options", "at most " + std::to_string(most_options) + " options");
    for (const auto& entry : *options->map())
      if (auto wrong = RowReader(entry, into).read()) return wrong;
  }
  return read_later(tree, into);
}

}  // namespace troupe::models
