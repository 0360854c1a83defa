#include "apps/hosts/line_reader.h"

#include <algorithm>

namespace troupe::apps {
namespace {

constexpr std::string_view blanks = " \t\r";

}  // namespace

LineReader::LineReader(std::string_view text, const std::string& name) : rest_(text) {
  sources_.add(name, std::string(text), Position());
}

std::optional<std::vector<Word>> LineReader::next() {
  while (!rest_.empty()) {
    const auto end = std::min(rest_.find('\n'), rest_.size());
    const auto line = rest_.substr(0, std::min(rest_.find('#'), end));
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    std::vector<Word> words;
    for (auto at = line.find_first_not_of(blanks); at != std::string_view::npos;) {
      const auto after = std::min(line.find_first_of(blanks, at), line.size());
      words.push_back({line.substr(at, after - at), {line_, static_cast<int>(at) + 1}});
      at = line.find_first_not_of(blanks, after);
    }
    if (!words.empty()) return words;
  }
  return {};
}

void LineReader::fail(const Word& word, const std::string& what, const std::string& hint) {
  found_.add({.message = what, .hint = hint, .position = word.position});
}

}  // namespace troupe::apps
