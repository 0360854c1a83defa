#pragma once

#include <string>
#include <vector>

namespace troupe::apps {

/// A table for a terminal. Each column is as wide as its widest cell.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns);

  /// Adds a row, with a cell for each column.
  void add(std::vector<std::string> cells);
  /// Adds a line below the last row.
  void add_note(const std::string& text);
  std::string text() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string notes;  // Whole lines.
  };

  std::vector<Column> columns_;
  std::vector<Row> rows_;  // The first one has the titles.
};

}  // namespace troupe::apps
