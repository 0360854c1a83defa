#include "config/validate.h"

#include <algorithm>
#include <cmath>

#include "config/keys.h"
#include "config/toml.h"
#include "config/units.h"

namespace troupe::config {
namespace {

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// The value as the user wrote it, unless it is long.
std::string found_text(const Value& value) {
  if (value.is_null()) return "nothing";
  const std::string text = to_toml(value);
  constexpr std::size_t longest = 60;
  return std::string(describe(value.kind())) + (text.size() <= longest ? " " + text : "");
}

bool in_bounds(const Key& key, double number) {
  return std::isfinite(number) && number >= key.least && number <= key.most;
}

bool is_auto(const Value& value) { return value.text() && *value.text() == "auto"; }

/// Why a value is not what its key wants; empty where it is.
class Complaint {
 public:
  Complaint(const Key& key, const Value& value) : key_(key), value_(value) {}

  std::string text() const {
    switch (key_.type) {
      case Type::integer: return unless(whole_in_bounds(value_));
      case Type::number: return unless(value_.is_number() && in_bounds(key_, value_.number()));
      case Type::boolean: return unless(value_.boolean());
      case Type::text: return unless(value_.text());
      case Type::choice: return unless(is_choice());
      case Type::integers:
      case Type::numbers: return unless(is_list());
      case Type::duration: return of_text(parse_duration, [](auto d) { return double(d.count()); });
      case Type::interval: return of_text(parse_interval, nullptr);
      case Type::range: return of_range();
      case Type::count_or_auto: return unless(is_auto(value_) || whole_in_bounds(value_));
      case Type::bytes_or_auto:
        if (is_auto(value_)) return {};
        return of_text(parse_bytes, [](std::int64_t bytes) { return static_cast<double>(bytes); });
      case Type::stages:
        return unless(is_auto(value_) || whole_in_bounds(value_) || is_boundaries());
    }
    return {};
  }

 private:
  std::string unless(bool good) const {
    if (good) return {};
    return key_.name + " wants " + wanted(key_) + ", but found " + found_text(value_);
  }
  bool whole_in_bounds(const Value& value) const {
    return value.integer() && in_bounds(key_, value.number());
  }
  bool is_choice() const {
    const auto* text = value_.text();
    return text && std::find(key_.choices.begin(), key_.choices.end(), *text) != key_.choices.end();
  }
  bool is_list() const {
    const auto* list = value_.list();
    if (!list || list->empty() || (key_.length != 0 && list->size() != key_.length)) return false;
    return std::all_of(list->begin(), list->end(), [&](const Value& item) {
      return key_.type == Type::integers ? whole_in_bounds(item)
                                         : item.is_number() && in_bounds(key_, item.number());
    });
  }
  bool is_boundaries() const {
    const auto* list = value_.list();
    if (!list || list->size() < 2 || list->size() - 1 > static_cast<std::size_t>(key_.most))
      return false;
    std::int64_t last = -1;
    for (const auto& item : *list) {
      if (!item.integer() || *item.integer() <= last || *item.integer() > 1'000'000) return false;
      last = *item.integer();
    }
    return *list->front().integer() == 0;
  }

  /// `measure`, where there is one, gives what the key's bounds are about.
  template <class Parse, class Measure>
  std::string of_text(Parse parse, Measure measure) const {
    const auto* text = value_.text();
    if (!text) return unless(false);
    const auto parsed = parse(*text);
    if (!parsed) return key_.name + ": " + parsed.error().text;
    if constexpr (!std::is_null_pointer_v<Measure>) return unless(in_bounds(key_, measure(*parsed)));
    return {};
  }
  std::string of_range() const {
    if (value_.integer()) return unless(whole_in_bounds(value_));
    const auto* text = value_.text();
    if (!text) return unless(false);
    const auto range = parse_range(*text);
    if (!range) return key_.name + ": " + range.error().text;
    if (in_bounds(key_, range->fewest) && in_bounds(key_, range->most)) return {};
    return key_.name + " wants counts from " + std::to_string(static_cast<int>(key_.least)) +
           " to " + std::to_string(static_cast<int>(key_.most)) + ", but found " +
           found_text(value_);
  }

  const Key& key_;
  const Value& value_;
};

class Validator {
 public:
  Validator(const Schema& schema, const Value& tree, Diagnostics& found)
      : schema_(schema), tree_(tree), found_(found) {}

  /// Everything that was written, table by table.
  void check_table(std::string_view table, const Value& value) {
    for (const auto& entry : *value.map()) {
      const std::string name = (table.empty() ? "" : std::string(table) + ".") + entry.key;
      // A key with a dot in it is none of ours, whatever it looks like.
      const bool known = entry.key.find('.') == entry.key.npos;
      if (known && schema_.is_table(name)) check_subtable(name, entry);
      else if (known && !schema_.rows(name).empty()) check_key(name, entry);
      else add_unknown(table, name, entry);
    }
  }

 private:
  void check_subtable(const std::string& name, const Value::Entry& entry) {
    if (entry.value.map()) return check_table(name, entry.value);
    found_.add({.key = name,
                .message = name + " is a table of keys, but found " + found_text(entry.value),
                .hint = "keys there: " + keys_in(name),
                .position = entry.value.position});
  }

  void check_key(const std::string& name, const Value::Entry& entry) {
    const Key* key = schema_.find(name, tree_);
    if (!key) return add_out_of_place(name, entry);
    const auto why = Complaint(*key, entry.value).text();
    if (why.empty()) return;
    found_.add({.key = name,
                .message = why,
                .hint = choice_hint(*key, entry.value),
                .position = entry.value.position});
  }

  static std::string choice_hint(const Key& key, const Value& value) {
    if (key.type != Type::choice || !value.text()) return {};
    const auto near = nearest(*value.text(), key.choices);
    return near.empty() ? "" : "did you mean '" + std::string(near) + "'?";
  }

  /// A key that exists, but not with the kind that was chosen.
  void add_out_of_place(const std::string& name, const Value::Entry& entry) {
    const Condition& first = schema_.rows(name).front()->when;
    const Value& decider = schema_.decider(first, tree_);
    // With a wrong kind, or none, nothing can be said about its keys.
    if (!Complaint(*schema_.find(first.key, tree_), decider).text().empty()) return;
    std::vector<std::string_view> kinds;
    for (const auto* row : schema_.rows(name))
      kinds.insert(kinds.end(), row->when.values.begin(), row->when.values.end());
    found_.add({.key = name,
                .message = name + " has no meaning with " + std::string(first.key) + " = \"" +
                           *decider.text() + "\"; it belongs to " + joined(kinds),
                .hint = "keys here: " + keys_in(std::string_view(name).substr(0, name.rfind('.'))),
                .position = entry.position,
                .width = static_cast<int>(entry.key.size())});
  }

  void add_unknown(std::string_view table, const std::string& name, const Value::Entry& entry) {
    const auto here = schema_.names_in(table, tree_);
    const auto near = nearest_key(name, here);
    std::string hint = "(keys here: " + keys_in(table) + ")";
    if (!near.empty()) hint = "did you mean '" + std::string(near) + "'?   " + hint;
    found_.add({.key = name,
                .message = "unknown key '" + name + "'",
                .hint = std::move(hint),
                .position = entry.position,
                .width = static_cast<int>(entry.key.size())});
  }

  /// In the same table first; then one of that name in another.
  std::string_view nearest_key(std::string_view name, const std::vector<std::string_view>& here) {
    std::vector<std::string_view> leaves;
    for (const auto other : here) leaves.push_back(last_part(other));
    const auto leaf = last_part(name);
    if (const auto near = nearest(leaf, leaves); !near.empty())
      return here[static_cast<std::size_t>(
          std::find(leaves.begin(), leaves.end(), near) - leaves.begin())];
    for (const auto& key : schema_.keys())
      if (key.leaf() == leaf && schema_.applies(key, tree_)) return key.name;
    return {};
  }

  std::string keys_in(std::string_view table) const {
    std::vector<std::string_view> leaves;
    for (const auto name : schema_.names_in(table, tree_)) leaves.push_back(last_part(name));
    return joined(leaves);
  }

  const Schema& schema_;
  const Value& tree_;
  Diagnostics& found_;
};

void complain_missing(const Schema& schema, const Key& key, const Value& tree, Diagnostics& found) {
  const Value* table = value_at(tree, key.section());
  if (table && !table->map()) return;  // Complained about already.
  std::string message = "missing key '" + key.name + "'";
  if (!key.when.key.empty())
    message += ", which " + std::string(key.when.key) + " = \"" +
               *schema.decider(key.when, tree).text() + "\" needs";
  found.add({.key = key.name,
             .message = message + ": " + wanted(key),
             .position = table && !key.section().empty() ? table->position : Position{}});
}

/// A preset's settings, as if they had been written where it was named.
Value expand_preset(const Value& tree) {
  const Value* named = value_at(tree, "staleness.preset");
  if (!named) return tree;
  Value expanded = tree;
  for (const auto& preset : presets()) {
    if (!named->text() || *named->text() != preset.name) continue;
    const auto put = [&](std::string_view name, Value value) {
      value.position = named->position;
      if (!value_at(expanded, name)) set_at(expanded, name, std::move(value));
    };
    put("staleness.predict", preset.predict);
    put("staleness.linearize_at", preset.linearize_at);
    put("staleness.gap_penalty", preset.gap_penalty);
    if (preset.recompute == Preset::Recompute::needed) put("pipeline.recompute", true);
  }
  auto& entries = *expanded.find("staleness")->map();
  std::erase_if(entries, [](const auto& entry) { return entry.key == "preset"; });
  return expanded;
}

}  // namespace

Value validate(const Schema& schema, const Value& tree, Diagnostics& found) {
  Validator(schema, tree, found).check_table("", tree);
  for (const auto& key : schema.keys())
    if (key.presence == Key::Presence::required && schema.applies(key, tree) &&
        !value_at(tree, key.name))
      complain_missing(schema, key, tree, found);
  if (!found.ok()) return tree;

  const Value expanded = expand_preset(tree);
  Value complete = Value::Map{};
  for (const auto& key : schema.keys()) {
    if (!schema.applies(key, expanded)) continue;
    const Value* written = value_at(expanded, key.name);
    const Value& value = written ? *written : key.fallback;
    if (!value.is_null()) set_at(complete, key.name, value);
  }
  complete.find("model")->position = expanded.find("model")->position;
  return complete;
}

}  // namespace troupe::config
