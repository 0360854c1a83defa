#include <algorithm>

#include "config/keys.h"
#include "config/model_kinds.h"
#include "config/pages/render.h"
#include "config/recipe.h"
#include "config/toml/toml.h"
#include "models/train/parameter_groups.h"

namespace troupe::config {
namespace {

constexpr std::size_t widest_column = 48;

std::string origin(const Loaded& loaded, const Value& value) {
  if (value.position.line == 0) return "default";
  const auto place = loaded.sources.find(value.position);
  if (place.source == "--set") return "--set " + std::string(place.line);
  std::string text(place.source);
  if (place.position.column > 0)
    text += ":" + std::to_string(place.position.line) + ":" + std::to_string(place.position.column);
  return text;
}

struct Line {
  std::string setting;
  std::string comment;
};

void append(std::string& out, const std::vector<Line>& lines) {
  std::size_t width = 0;
  for (const auto& line : lines)
    if (line.setting.size() <= widest_column) width = std::max(width, line.setting.size());
  for (const auto& line : lines) {
    const auto blanks = width > line.setting.size() ? width - line.setting.size() : 0;
    out += line.setting + std::string(blanks, ' ') + "  # " + line.comment + "\n";
  }
}

/// Appends a comment for each group of parameters that says what it takes.
void append_groups(std::string& out, const RunConfig& config) {
  const auto& groups = config.optimizer.groups;
  if (groups.empty()) return;
  constexpr std::int64_t stand_in_vocabulary = 256;
  const auto model = model_from(config.model.table_for(stand_in_vocabulary));
  if (!model) return;
  const auto taken = models::taken_by(groups, models::parameter_names(*model));
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto& names = taken[i];
    const bool is_group = i < groups.size();
    const std::string who =
        is_group ? "group " + std::to_string(i + 1) + (groups[i].frozen ? " freezes " : " takes ")
                 : "no group takes ";
    out += "# " + who + std::to_string(names.size()) +
           (names.size() == 1 ? " parameter" : " parameters") +
           (names.empty() ? "" : ": " + names.front()) + (names.size() > 1 ? ", ..." : "") + "\n";
  }
}

}  // namespace

std::string show(const Loaded& loaded, Show what) {
  std::string out;
  const auto schema = schema_for(loaded.tree);
  for (const auto& section : sections()) {
    std::vector<Line> lines;
    for (const auto& key : schema->keys()) {
      if (key.section() != section.name) continue;
      const Value* value = value_at(loaded.tree, key.name);
      if (!value || !schema->applies(key, loaded.tree)) continue;
      std::string comment = is_recipe(key, loaded.tree) ? "recipe" : "plan";
      if (what == Show::origins) {
        comment.resize(std::string_view("recipe").size(), ' ');
        comment += "  " + origin(loaded, *value);
      }
      lines.push_back({std::string(key.leaf()) + " = " + to_toml(*value), std::move(comment)});
    }
    if (lines.empty()) continue;
    if (!section.name.empty()) out += "\n[" + std::string(section.name) + "]\n";
    append(out, lines);
    if (section.name == "optimizer") append_groups(out, loaded.config);
  }
  return out;
}

std::vector<Completion> completions() {
  std::vector<Completion> all;
  for (const auto& key : schema().keys()) {
    const std::string word = key.name + "=";
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const Completion& other) { return other.word == word; });
    if (!known) all.push_back({word, std::string(key.help)});
  }
  return all;
}

}  // namespace troupe::config
