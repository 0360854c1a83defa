#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/events/terminal_width.h"
#include "apps/events/tone.h"

namespace troupe::apps {

/// Returns how many columns of a terminal a text takes. Codes of colours take none.
std::size_t width_of(const std::string& text);
/// Returns a text of at most so many columns: "checkpoin…". One that is too long loses its end.
std::string cut_end(const std::string& text, std::size_t columns);

/// A table for a terminal. Each column is as wide as its widest cell.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    std::size_t least = 0;  // Its least width, so that columns do not move when cells change.
  };
  explicit Table(std::vector<Column> columns);

  /// Adds a row, with a cell for each column.
  void add(std::vector<std::string> cells);
  /// Colours a cell of the last row.
  void colour(std::size_t column, Tone tone);
  /// Adds a line below the last row.
  void add_note(const std::string& text, Tone tone = Tone::plain);
  /// Returns the columns of a terminal that the rows take. Notes may take more.
  std::size_t width() const;
  /// If rows take more columns than there are, cells of the first column lose their middle:
  /// "a-l…ame". Notes are broken between words.
  std::string text(const TextForm& form = {}) const;

 private:
  std::vector<std::size_t> widths() const;

  struct Note {
    std::string text;
    Tone tone = Tone::plain;
  };
  struct Row {
    std::vector<std::string> cells;
    std::vector<Tone> tones;
    std::vector<Note> notes;
  };

  std::vector<Column> columns_;
  std::vector<Row> rows_;  // The first one has the titles.
};

}  // namespace troupe::apps
