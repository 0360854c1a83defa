#include "config/toml/toml_guard.h"

#include <algorithm>

namespace troupe::config {

bool is_bare_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

namespace {

constexpr int most_key_parts = 32;

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// Walks over a text, by whole strings and comments and otherwise by character.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // A byte order mark.
  }

  std::optional<TomlTrouble> walk() {
    while (at_ < text_.size() && !trouble_) {
      const char c = text_[at_];
      if (c == '#')
        skip_comment();
      else if (c == '"' || c == '\'')
        take_string(c);
      else
        look_at(c);
    }
    return trouble_;
  }

 private:
  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void look_at(char c) {
    if (!is_ascii(c))
      return stop("outside of quotes only ASCII may stand; put a key or a text in quotes");
    if (c == '.' && after_key_)
      ++dots_;
    else if (c != '.' && c != ' ' && c != '\t' && !is_bare_key_character(c))
      dots_ = 0;
    if (dots_ >= most_key_parts)
      return stop("a key of more than " + std::to_string(most_key_parts) + " parts");
    after_key_ = c != '.';
    follow(c);
    ++at_;
  }

  /// Tracks whether the text is in a key or a value.
  void follow(char c) {
    const bool is_in_list = !open_.empty() && open_.back() == '[';
    switch (c) {
      case ' ':
      case '\t':
      case '\r':
        return;
      case '\n':
      case ',':
        in_value_ = is_in_list;
        break;
      case '=':
        if (in_value_) return stop("a second '=' in a value; put a text in quotes");
        in_value_ = true;
        break;
      case '[':
        if (in_value_) open(c);
        break;
      case '{':
        open(c);
        in_value_ = false;
        break;
      case ']':
      case '}':
        if (open_.empty()) break;
        open_.pop_back();
        in_value_ = true;
        break;
      default:
        break;
    }
    before_ = c;
  }

  void open(char bracket) {
    if (in_value_ && !begins_value())
      return stop("a bracket in the middle of a value; it may only begin one");
    open_.push_back(bracket);
  }

  bool begins_value() const { return std::string_view("=[,\n").find(before_) != text_.npos; }
  bool begins_key() const { return std::string_view("\n.[{,").find(before_) != text_.npos; }

  /// Skips a string. Within a number the library reads on over brackets, '=' and quotes.
  void take_string(char quote) {
    if (!(in_value_ ? begins_value() : begins_key()))
      return stop("a quote in the middle of a key or a value; it may only begin or end one");
    skip_string(quote);
    before_ = quote;
  }

  void skip_string(char quote) {
    const std::string three(3, quote);
    if (text_.substr(at_).starts_with(three)) return skip_lines(quote, three);
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && quote == '"')
        ++at_;
      else if (text_[at_] == quote)
        break;
    }
    ++at_;
    after_key_ = true;
  }

  /// Skips a string of several lines.
  void skip_lines(char quote, const std::string& three) {
    for (at_ += 3; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\' && quote == '"') {
        skip_escape();
        if (trouble_) return;
      } else if (text_.substr(at_).starts_with(three)) {
        at_ += 3;
        // Up to two quotes may precede the three that end the string.
        for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;
        return;
      }
    }
  }

  /// Skips an escape. A backslash at the end of a line also skips the next blanks.
  void skip_escape() {
    const auto next = text_.find_first_not_of(" \t\r\n", at_ + 1);
    if (next != text_.npos && !is_ascii(text_[next])) {
      at_ = next;
      return stop("after a backslash only ASCII may stand");
    }
    ++at_;
  }

  void stop(std::string why) {
    Position position{1, 1};
    for (const char c : text_.substr(0, at_)) {
      if (c == '\n')
        position = {position.line + 1, 1};
      else
        ++position.column;
    }
    trouble_ = {position, std::move(why)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int dots_ = 0;
  bool after_key_ = false;
  bool in_value_ = false;
  char before_ = '\n';  // The last character that is not blank.
  std::string open_;    // The open brackets of values.
  std::optional<TomlTrouble> trouble_;
};

}  // namespace

std::optional<TomlTrouble> find_toml_trouble(std::string_view text) { return Walker(text).walk(); }

}  // namespace troupe::config
