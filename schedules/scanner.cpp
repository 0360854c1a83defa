#include "schedules/scanner.h"

#include <algorithm>

namespace troupe::schedules {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_part(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

Error error_at(Position position, const std::string& text) {
  return {std::to_string(position.line) + ':' + std::to_string(position.column) + ": " + text};
}

Scanner::Scanner(std::string_view text) : text_(text) {
  skip_blanks();
  skip_empty_lines();
  taken_ = at_;
}

void Scanner::take(std::size_t count) {
  at_ += count;
  taken_ = at_;
  skip_blanks();
}

void Scanner::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  if (at_ < text_.size() && text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
}

void Scanner::skip_empty_lines() {
  while (at_ < text_.size() && text_[at_] == '\n') {
    line_start_ = ++at_;
    ++line_;
    skip_blanks();
  }
}

bool Scanner::accept(char wanted) {
  if (peek() != wanted || at_end()) return false;
  take(1);
  return true;
}

bool Scanner::accept_line_end() {
  if (!at_line_end()) return false;
  skip_empty_lines();
  taken_ = at_;
  return true;
}

bool Scanner::at_word(std::string_view wanted) const {
  const auto rest = text_.substr(at_);
  return rest.starts_with(wanted) &&
         (rest.size() == wanted.size() || !is_word_part(rest[wanted.size()]));
}

bool Scanner::accept_word(std::string_view wanted) {
  if (!at_word(wanted)) return false;
  take(wanted.size());
  return true;
}

std::string Scanner::word() {
  std::size_t end = at_;
  while (end < text_.size() && !is_blank(text_[end]) && text_[end] != '\n') ++end;
  std::string word(text_.substr(at_, end - at_));
  take(end - at_);
  return word;
}

Result<int> Scanner::number(int least, int most, const std::string& what) {
  std::size_t end = at_;
  long long number = 0;
  // The cap keeps long digit strings from overflowing; such a number is out of range anyway.
  for (; end < text_.size() && is_digit(text_[end]); ++end)
    number = std::min(number * 10 + (text_[end] - '0'), 1LL << 40);
  if (end == at_ || number < least || number > most)
    return unexpected(
        what + (least == most ? ", " + std::to_string(least)
                              : ", from " + std::to_string(least) + " to " + std::to_string(most)));
  take(end - at_);
  return static_cast<int>(number);
}

Error Scanner::unexpected(const std::string& wanted) const {
  std::size_t end = at_;
  while (end < text_.size() && is_word_part(text_[end]) && end - at_ < 20) ++end;
  std::string found;
  if (at_end())
    found = "the end of the text";
  else if (text_[at_] == '\n')
    found = "the end of the line";
  else if (end > at_)
    found = "'" + std::string(text_.substr(at_, end - at_)) + "'";
  else if (text_[at_] > ' ' && text_[at_] <= '~')
    found = std::string("'") + text_[at_] + "'";
  else
    found = "the byte " + std::to_string(static_cast<unsigned char>(text_[at_]));
  return error_at(position(), "found " + found + ", expected " + wanted);
}

}  // namespace troupe::schedules
