#include "apps/client/table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/text.h"

namespace troupe::apps {

namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t least_first = 8;
constexpr std::size_t continued = 6;  // Spaces before what continues a note.
constexpr const char* ellipsis = "…";
constexpr const char* end_of_colour = "\x1b[m";

/// Returns where the code of a colour at this place ends; the same place if there is none.
std::size_t behind_code(const std::string& text, std::size_t place) {
  if (text.compare(place, 2, "\x1b[") != 0) return place;
  const auto end = text.find('m', place);
  return end == text.npos ? text.size() : end + 1;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// Returns where the character with this number begins, or the end of the text.
std::size_t place_of(const std::string& text, std::size_t number) {
  for (std::size_t place = 0; place < text.size();) {
    if (const auto end = behind_code(text, place); end != place) {
      place = end;
      continue;
    }
    if (begins_character(text[place]) && number-- == 0) return place;
    ++place;
  }
  return text.size();
}

std::string cut_middle(const std::string& text, std::size_t columns) {
  const auto width = width_of(text);
  if (width <= columns) return text;
  const auto back = (columns - 1) / 2;
  return text.substr(0, place_of(text, columns - 1 - back)) + ellipsis +
         text.substr(place_of(text, width - back));
}

}  // namespace

std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  for (std::size_t place = 0; place < text.size();) {
    if (const auto end = behind_code(text, place); end != place) {
      place = end;
      continue;
    }
    if (begins_character(text[place++])) ++width;
  }
  return width;
}

std::string cut_end(const std::string& text, std::size_t columns) {
  if (columns == 0 || width_of(text) <= columns) return columns == 0 ? std::string() : text;
  const auto kept = text.substr(0, place_of(text, columns - 1));
  return kept + ellipsis + (kept.find('\x1b') == kept.npos ? "" : end_of_colour);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  add(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), std::vector<Tone>(columns_.size(), Tone::plain), {}});
}

void Table::colour(std::size_t column, Tone tone) { rows_.back().tones.at(column) = tone; }

void Table::add_note(const std::string& text, Tone tone) {
  rows_.back().notes.push_back({"    " + text, tone});
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_) widths.push_back(column.least);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row.cells[i]));
  return widths;
}

std::size_t Table::width() const {
  const auto all = widths();
  return std::accumulate(all.begin(), all.end(), gap * (all.size() - 1));
}

std::string Table::text(const TextForm& form) const {
  const auto coloured = [&](std::string part, Tone tone) {
    return form.has_colours ? toned(std::move(part), tone) : part;
  };
  std::string text;
  auto widths = this->widths();
  if (const auto all = width(); all > form.columns)
    widths[0] = std::min(
        widths[0], std::max(least_first, widths[0] - std::min(widths[0], all - form.columns)));
  for (const auto& row : rows_) {
    std::string line, spaces;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const auto cell = i == 0 ? cut_middle(row.cells[i], widths[i]) : row.cells[i];
      const std::string room(widths[i] - width_of(cell), ' ');
      const bool is_right = columns_[i].align == Align::right;
      if (is_right) spaces += room;
      // Spaces at the end of a line are left out.
      if (!cell.empty()) line += std::exchange(spaces, {}) + coloured(cell, row.tones[i]);
      spaces += (is_right ? std::string() : room) + std::string(gap, ' ');
    }
    text += line + "\n";
    for (const auto& note : row.notes) {
      std::istringstream lines(wrapped(note.text, form.columns, continued));
      for (std::string one; std::getline(lines, one);) text += coloured(one, note.tone) + "\n";
    }
  }
  return text;
}

}  // namespace troupe::apps
