#include "storage/tokenizer/fields.h"

#include "core/json.h"

namespace troupe::storage {
namespace {

/// Returns a value for a message. A long one is cut.
std::string shown(const Value& value) {
  constexpr std::size_t most = 80;
  if (value.list() || value.map()) return std::string(describe(value.kind()));
  auto text = to_json(value);
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

}  // namespace

Fields::Fields(const Value& map, std::string place) : map_(map), place_(std::move(place)) {
  if (!map.map())
    fault_ =
        Error{(place_.empty() ? "the file" : place_) + ": is " + shown(map) + "; a map was wanted"};
}

std::string Fields::place_of(std::string_view key) const {
  return place_.empty() ? std::string(key) : place_ + "." + std::string(key);
}

const Value* Fields::find(std::string_view key) {
  read_.emplace(key);
  const auto* value = map_.find(key);
  return value && !value->is_null() ? value : nullptr;
}

void Fields::fail(std::string_view key, const std::string& reason) {
  if (!fault_) fault_ = Error{place_of(key) + ": " + reason};
}

const Value* Fields::need(std::string_view key, bool is_optional, const char* wanted) {
  const auto* value = find(key);
  if (!value && !is_optional) fail(key, std::string("is missing; ") + wanted + " was wanted");
  return value;
}

std::string Fields::text(std::string_view key, std::optional<std::string> otherwise) {
  const auto* value = need(key, otherwise.has_value(), "a text");
  if (value && value->text()) return *value->text();
  if (value) fail(key, "is " + shown(*value) + "; a text was wanted");
  return otherwise.value_or("");
}

std::optional<std::string> Fields::optional_text(std::string_view key) {
  const auto* value = find(key);
  if (!value) return {};
  return text(key);
}

bool Fields::boolean(std::string_view key, std::optional<bool> otherwise) {
  const auto* value = need(key, otherwise.has_value(), "true or false");
  if (value && value->boolean()) return *value->boolean();
  if (value) fail(key, "is " + shown(*value) + "; true or false was wanted");
  return otherwise.value_or(false);
}

std::int64_t Fields::integer(std::string_view key, std::int64_t least, std::int64_t most,
                             std::optional<std::int64_t> otherwise) {
  const auto* value = need(key, otherwise.has_value(), "an integer");
  if (value && value->integer() && *value->integer() >= least && *value->integer() <= most)
    return *value->integer();
  if (value)
    fail(key, "is " + shown(*value) + "; an integer from " + std::to_string(least) + " to " +
                  std::to_string(most) + " was wanted");
  return otherwise.value_or(least);
}

const Value::List* Fields::list(std::string_view key) {
  const auto* value = need(key, false, "a list");
  if (value && !value->list()) fail(key, "is " + shown(*value) + "; a list was wanted");
  return value ? value->list() : nullptr;
}

const Value::Map* Fields::map(std::string_view key) {
  const auto* value = need(key, false, "a map");
  if (value && !value->map()) fail(key, "is " + shown(*value) + "; a map was wanted");
  return value ? value->map() : nullptr;
}

std::size_t Fields::among(std::string_view key, std::initializer_list<std::string_view> names,
                          std::optional<std::size_t> otherwise) {
  if (!find(key) && otherwise) return *otherwise;
  const auto word = text(key);
  std::size_t index = 0;
  std::string known;
  for (const auto name : names) {
    if (name == word) return index;
    known += (index++ ? ", " : "") + std::string(name);
  }
  fail(key, "is \"" + word + "\"; one of these was wanted: " + known);
  return 0;
}

void Fields::must_be_unset(std::string_view key) {
  const auto* value = find(key);
  if (!value || (value->boolean() && !*value->boolean()) ||
      (value->text() && value->text()->empty()) || (value->is_number() && value->number() == 0))
    return;
  fail(key, "is " + shown(*value) + "; only tokenizers without it are read");
}

Status Fields::finish() {
  if (fault_) return *fault_;
  for (const auto& entry : *map_.map())
    if (!read_.contains(entry.key))
      return Error{place_of(entry.key) +
                   ": is not known here, so the tokens might differ; a setting of the library "
                   "`tokenizers` that this program knows was wanted"};
  return Done{};
}

}  // namespace troupe::storage
