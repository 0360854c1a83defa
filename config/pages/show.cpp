#include <algorithm>

#include "config/keys.h"
#include "config/pages/render.h"
#include "config/recipe.h"
#include "config/toml/toml.h"

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

}  // namespace

std::string show(const Loaded& loaded, Show what) {
  std::string out;
  const auto schema = schema_for(loaded.tree);
  for (const auto& section : sections()) {
    std::vector<Line> lines;
    for (const auto& key : schema->keys()) {
      const Value* value = value_at(loaded.tree, key.name);
      if (key.section() != section.name || !value || !schema->applies(key, loaded.tree)) continue;
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
