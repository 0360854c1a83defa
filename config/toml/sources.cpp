#include "config/toml/sources.h"

#include <algorithm>

namespace troupe::config {
namespace {

int count_lines(std::string_view text) {
  return 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

void move_down(Value& value, int lines) {
  if (value.position.line > 0) value.position.line += lines;
  if (auto* list = value.list())
    for (auto& item : *list) move_down(item, lines);
  if (auto* map = value.map())
    for (auto& entry : *map) {
      if (entry.position.line > 0) entry.position.line += lines;
      move_down(entry.value, lines);
    }
}

std::string_view line_of(std::string_view text, int line) {
  for (; line > 1; --line) {
    const auto end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

int Sources::append(std::string name, std::string text) {
  const int before = lines_;
  lines_ += count_lines(text);
  sources_.push_back({std::move(name), std::move(text), before});
  return before;
}

void Sources::add(std::string name, std::string text, Value& tree) {
  move_down(tree, append(std::move(name), std::move(text)));
}

Position Sources::add(std::string name, std::string text, Position position) {
  position.line += append(std::move(name), std::move(text));
  return position;
}

Sources::Place Sources::find(Position position) const {
  if (sources_.empty()) return {};
  if (position.line == 0) return {sources_.front().name, {}, {}};
  const auto after = std::find_if(sources_.begin(), sources_.end(), [&](const Source& source) {
    return source.lines_before >= position.line;
  });
  const Source& source = *(after - 1);
  position.line -= source.lines_before;
  return {source.name, position, line_of(source.text, position.line)};
}

}  // namespace troupe::config
