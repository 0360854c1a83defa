#include "apps/client/table.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace troupe::apps {

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

std::string Table::text() const {
  std::string text;
  std::vector<std::size_t> widths(columns_.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], row.cells[i].size());
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string room(widths[i] - row.cells[i].size(), ' ');
      const bool is_right = columns_[i].align == Align::right;
      line += (is_right ? room + row.cells[i] : row.cells[i] + room) + "  ";
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n" + row.notes;
  }
  return text;
}

}  // namespace troupe::apps
