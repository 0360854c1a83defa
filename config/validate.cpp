#include "config/validate.h"

#include <algorithm>

#include "config/check_value.h"
#include "config/keys.h"
#include "config/schema.h"
#include "core/text.h"

namespace troupe::config {
namespace {

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

class Validator {
 public:
  Validator(const Schema& schema, const Value& tree, Diagnostics& found)
      : schema_(schema), tree_(tree), found_(found) {}

  /// Checks all written keys, table by table.
  void check_table(std::string_view table, const Value& value) {
    for (const auto& entry : *value.map()) {
      const std::string name = (table.empty() ? "" : std::string(table) + ".") + entry.key;
      // A quoted key with a dot is never one of ours.
      const bool known = entry.key.find('.') == entry.key.npos;
      if (known && schema_.is_table(name))
        check_subtable(name, entry);
      else if (known && !schema_.rows(name).empty())
        check_key(name, entry);
      else
        add_unknown(table, name, entry);
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
    const auto why = complaint(*key, entry.value);
    if (why.empty()) return check_groups(*key, entry.value);
    found_.add({.key = name,
                .message = why,
                .hint = suggestion(*key, entry.value),
                .position = entry.value.position});
  }

  /// Checks the tables of a list of groups. Other keys have none.
  void check_groups(const Key& key, const Value& value) {
    if (key.type != Type::groups) return;
    for (const auto& table : *value.list()) check_group(key, table);
  }

  void check_group(const Key& list, const Value& table) {
    const auto keys = group_keys();
    std::vector<std::string_view> names;
    for (const auto& key : keys) names.push_back(key.name);
    const std::string keys_here = "(keys here: " + joined(names) + ")";
    for (const auto& entry : *table.map()) {
      const auto known = std::ranges::find(names, entry.key);
      if (known == names.end()) {
        const auto near = nearest(entry.key, names);
        found_.add({.key = list.name,
                    .message = "unknown key '" + list.name + "." + entry.key + "'",
                    .hint = (near.empty() ? "" : "did you mean '" + std::string(near) + "'?   ") +
                            keys_here,
                    .position = entry.position,
                    .width = static_cast<int>(entry.key.size())});
        continue;
      }
      Key key = keys[static_cast<std::size_t>(known - names.begin())];
      key.name = list.name + "." + key.name;
      if (auto why = complaint(key, entry.value); !why.empty())
        found_.add({.key = list.name, .message = why, .position = entry.value.position});
    }
    for (const auto& key : keys)
      if (key.presence == Key::Presence::required && !table.find(key.name))
        found_.add({.key = list.name,
                    .message = "missing key '" + list.name + "." + key.name + "': " + wanted(key),
                    .hint = keys_here,
                    .position = table.position});
  }

  /// Reports a key that exists only for another kind.
  void add_out_of_place(const std::string& name, const Value::Entry& entry) {
    const Condition& first = schema_.rows(name).front()->when;
    const Value& decider = schema_.decider(first, tree_);
    // Without a valid kind its keys cannot be judged.
    if (!complaint(*schema_.find(first.key, tree_), decider).empty()) return;
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

  /// Returns a similar key of the same table, or else a key of that name in another table.
  std::string_view nearest_key(std::string_view name, const std::vector<std::string_view>& here) {
    std::vector<std::string_view> leaves;
    for (const auto other : here) leaves.push_back(last_part(other));
    const auto leaf = last_part(name);
    if (const auto near = nearest(leaf, leaves); !near.empty())
      return here[static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), near) -
                                           leaves.begin())];
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
  if (table && !table->map()) return;  // Already reported.
  std::string message = "missing key '" + key.name + "'";
  if (!key.when.key.empty())
    message += ", which " + std::string(key.when.key) + " = \"" +
               *schema.decider(key.when, tree).text() + "\" needs";
  found.add({.key = key.name,
             .message = message + ": " + wanted(key),
             .position = table && !key.section().empty() ? table->position : Position{}});
}

/// Replaces a preset by its settings, at the preset's position.
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

Value validate(const Value& tree, Diagnostics& found) {
  const auto applying = schema_for(tree);
  const Schema& schema = *applying;
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
