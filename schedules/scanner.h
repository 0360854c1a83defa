#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "core/value.h"

namespace troupe::schedules {

/// Formats an error as "3:14: text".
Error error_at(Position position, const std::string& text);

/// A cursor over a text that tracks line and column. It skips blanks and comments before each
/// token, and skips empty lines together with a line's end.
class Scanner {
 public:
  explicit Scanner(std::string_view text);

  Position position() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  bool at_end() const { return at_ == text_.size(); }
  bool at_line_end() const { return at_end() || text_[at_] == '\n'; }
  /// Returns the character at the cursor, or 0 at the end of the text.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  /// Returns whether the last token ends right here, without a blank in between.
  bool glued() const { return at_ == taken_; }

  bool accept(char wanted);
  bool accept_line_end();
  bool at_word(std::string_view wanted) const;
  bool accept_word(std::string_view wanted);
  /// Reads up to the next blank; returns an empty string at the end of a line.
  std::string word();

  /// Reads an unsigned integer from `least` to `most`; `what` names it in error messages.
  Result<int> number(int least, int most, const std::string& what);

  /// Returns the error "line:column: found 'x', expected `wanted`".
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
