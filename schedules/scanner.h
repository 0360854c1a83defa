#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::schedules {

/// "3:14: text"
Error error_at(Position position, const std::string& text);

/// Walks over a text, and knows line and column. Blanks and comments within a line are skipped in
/// front of whatever is asked for; empty lines are skipped together with a line's end.
class Scanner {
 public:
  explicit Scanner(std::string_view text);

  Position position() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  bool at_end() const { return at_ == text_.size(); }
  bool at_line_end() const { return at_end() || text_[at_] == '\n'; }
  /// The character here, 0 at the end.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  /// Whether nothing, not even a blank, lies between here and what was taken last.
  bool glued() const { return at_ == taken_; }

  bool accept(char wanted);
  bool accept_line_end();
  bool at_word(std::string_view wanted) const;
  bool accept_word(std::string_view wanted);
  /// All up to the next blank; empty at the end of a line.
  std::string word();

  /// A whole number without sign that fits; `what` says in messages which.
  Result<int> number(int least, int most, const std::string& what);

  /// "line:column: found 'x', expected " and what was wanted.
  Error unexpected(const std::string& wanted) const;

 private:
  void take(std::size_t count);
  void skip_blanks();
  void skip_empty_lines();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t taken_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace troupe::schedules
