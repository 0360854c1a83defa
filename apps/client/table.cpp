#include "apps/client/table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <utility>

namespace troupe::apps {

namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t least_first = 8;
constexpr const char* ellipsis = "…";

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// Returns where the character with this number begins.
std::size_t place_of(const std::string& text, std::size_t number) {
  std::size_t place = 0;
  for (; place < text.size(); ++place)
    if (begins_character(text[place]) && number-- == 0) break;
  return place;
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
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut_end(const std::string& text, std::size_t columns) {
  if (columns == 0 || width_of(text) <= columns) return columns == 0 ? std::string() : text;
  return text.substr(0, place_of(text, columns - 1)) + ellipsis;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  add(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), {}});
}

void Table::add_note(const std::string& text) { rows_.back().notes += "    " + text + "\n"; }

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

std::string Table::text(std::size_t most) const {
  std::string text;
  auto widths = this->widths();
  if (const auto all = width(); all > most)
    widths[0] =
        std::min(widths[0], std::max(least_first, widths[0] - std::min(widths[0], all - most)));
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const auto cell = i == 0 ? cut_middle(row.cells[i], widths[i]) : row.cells[i];
      const std::string room(widths[i] - width_of(cell), ' ');
      const bool is_right = columns_[i].align == Align::right;
      line += (is_right ? room + cell : cell + room) + std::string(gap, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n" + row.notes;
  }
  return text;
}

}  // namespace troupe::apps
