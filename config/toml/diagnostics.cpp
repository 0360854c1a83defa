#include "config/toml/diagnostics.h"

#include <algorithm>

namespace troupe::config {
namespace {

constexpr std::size_t most_shown = 50;
constexpr std::size_t longest_line = 160;
constexpr std::size_t context = 60;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Replaces each control character by one character, so that a file cannot control a terminal.
std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\t') || code == 0x7f) c = '?';
  }
  return out;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

/// Returns the length of the first word in bytes: a quoted text, a list, or everything up to the
/// end of a value.
std::size_t word_length(std::string_view text) {
  if (text.empty()) return 1;
  if (text[0] == '"' || text[0] == '\'') {
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '\\' && text[0] == '"')
        ++i;
      else if (text[i] == text[0])
        return i + 1;
    }
    return text.size();
  }
  if (text[0] == '[' || text[0] == '{') {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[' || text[i] == '{') ++depth;
      if ((text[i] == ']' || text[i] == '}') && --depth == 0) return i + 1;
    }
    return 1;
  }
  return std::max<std::size_t>(1, std::min(text.find_first_of(" \t,]}=#:"), text.size()));
}

/// Prints the line with its number, and carets below the error.
std::string excerpt(const Sources::Place& place, const Diagnostic& diagnostic) {
  std::string_view line = place.line;
  auto begin = std::min(static_cast<std::size_t>(place.position.column - 1), line.size());
  auto width = diagnostic.width > 0 ? static_cast<std::size_t>(diagnostic.width)
                                    : word_length(line.substr(begin));
  if (line.size() > longest_line) {
    std::size_t cut = begin > context ? begin - context : 0;
    while (cut < begin && continues_character(line[cut])) ++cut;
    line = line.substr(cut, longest_line);
    begin -= cut;
  }
  width = std::min(width, std::max<std::size_t>(line.size() - begin, 1));

  const std::string number = std::to_string(place.position.line);
  const std::string gutter(std::max<std::size_t>(number.size(), 5), ' ');
  std::string out = gutter.substr(number.size()) + number + " | " + printable(line) + "\n";
  out += gutter + " | ";
  for (const char c : line.substr(0, begin))
    if (!continues_character(c)) out += c == '\t' ? '\t' : ' ';
  out += '^';
  const auto characters = count_characters(line.substr(begin, width));
  if (characters > 1) out.append(characters - 1, '~');
  if (!diagnostic.hint.empty()) out += " " + printable(diagnostic.hint);
  return out + "\n";
}

std::string render_one(const Sources& sources, const Diagnostic& diagnostic) {
  const auto place = sources.find(diagnostic.position);
  std::string out(place.source);
  const bool has_line = place.position.column > 0;
  if (has_line)
    out += ":" + std::to_string(place.position.line) + ":" + std::to_string(place.position.column);
  if (!out.empty()) out += ": ";
  out += diagnostic.severity == Diagnostic::Severity::error ? "error: " : "warning: ";
  out += printable(diagnostic.message);
  if (has_line) return out + "\n" + excerpt(place, diagnostic);
  if (!diagnostic.hint.empty()) out += "; " + printable(diagnostic.hint);
  return out + "\n";
}

}  // namespace

void Diagnostics::add(Diagnostic diagnostic) { found_.push_back(std::move(diagnostic)); }

bool Diagnostics::ok() const {
  return std::none_of(found_.begin(), found_.end(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Diagnostic::Severity::error;
  });
}

std::string Diagnostics::render(const Sources& sources) const {
  auto sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.position.line, a.position.column) <
           std::pair(b.position.line, b.position.column);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(sorted.size(), most_shown); ++i)
    out += render_one(sources, sorted[i]);
  if (sorted.size() > most_shown)
    out += "and " + std::to_string(sorted.size() - most_shown) + " more\n";
  return out;
}

}  // namespace troupe::config
