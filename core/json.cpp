#include "core/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "core/units.h"

namespace troupe {
namespace {

constexpr std::size_t small_object = 16;

/// An iterator over the text that records how far the parser has come.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  const char& operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Cursor& a, const Cursor& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

/// A converter from growing offsets to lines and columns.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}
  Position at(std::size_t offset) {
    for (; seen_ < offset && seen_ < text_.size(); ++seen_) {
      if (text_[seen_] != '\n') continue;
      ++line_;
      line_start_ = seen_ + 1;
    }
    return {line_, static_cast<int>(offset - line_start_) + 1};
  }

 private:
  std::string_view text_;
  std::size_t seen_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

std::string said(Position position) {
  return std::to_string(position.line) + ":" + std::to_string(position.column) + ": ";
}

/// A parser callback that builds a Value.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view text, const JsonLimits& limits)
      : furthest(text.data()), text_(text), places_(text), limits_(limits) {}

  bool null() { return put({}); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(number_integer_t value) { return put(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return put(static_cast<double>(value));
    return put(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) { return put(value); }
  bool string(string_t& value) { return put(std::move(value)); }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Value::Map{}); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Value::List{}); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    const Position position = token_start();
    if (!is_new(name))
      return fail(position, "the key \"" + name + "\" comes twice in one object; keep one of them");
    open_.back()->map()->push_back({std::move(name), {}, position});
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& why) {
    // Cut off the library's name and position; fail() adds ours.
    std::string reason = why.what();
    if (const auto at = reason.find("syntax error"); at != std::string::npos) reason.erase(0, at);
    // Cut off the last token read: our position already shows it.
    if (const auto at = reason.find("; last read"); at != std::string::npos)
      reason.erase(at, std::min(reason.rfind("; expected"), reason.size()) - at);
    const std::size_t read = end_offset() ? end_offset() - 1 : 0;
    return fail(places_.at(std::min(skip_separators(last_end_), read)),
                "this is not JSON: " + reason);
  }

  const char* furthest;
  Value root;
  std::string error;

 private:
  std::size_t end_offset() const { return static_cast<std::size_t>(furthest - text_.data()); }

  /// Returns where the last token began. After a number the parser has read one more character.
  Position token_start() {
    std::size_t at = end_offset();
    while (at > last_end_ && at > 0 && is_blank(text_[at - 1])) --at;
    const std::size_t begin = std::min(skip_separators(last_end_), at);
    last_end_ = end_offset();
    // The character that ended a number may be a token of its own: leave it unread.
    if (last_end_ > 0 && last_end_ > begin + 1 &&
        std::string_view(",:]}").find(text_[last_end_ - 1]) != std::string_view::npos &&
        text_[begin] != '"')
      --last_end_;
    return places_.at(begin);
  }
  std::size_t skip_separators(std::size_t at) const {
    while (at < text_.size() && (is_blank(text_[at]) || text_[at] == ',' || text_[at] == ':')) ++at;
    return at;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  bool put(Value value) {
    value.position = token_start();
    place(std::move(value));
    return true;
  }
  /// Returns whether the open object does not have this key yet, and notes it. Few keys are
  /// compared with each other; more of them are kept in order.
  bool is_new(const std::string& key) {
    const auto& entries = *open_.back()->map();
    auto& keys = keys_.back();
    if (entries.size() < small_object)
      return std::ranges::none_of(entries, [&](const auto& entry) { return entry.key == key; });
    if (keys.empty())
      for (const auto& entry : entries) keys.insert(entry.key);
    return keys.insert(key).second;
  }
  Value& place(Value value) {
    if (open_.empty()) return root = std::move(value);
    if (auto* list = open_.back()->list()) return list->emplace_back(std::move(value));
    return open_.back()->map()->back().value = std::move(value);
  }
  bool open(Value value) {
    value.position = token_start();
    if (static_cast<int>(open_.size()) >= limits_.depth)
      return fail(value.position,
                  "nested deeper than " + std::to_string(limits_.depth) + " levels");
    open_.push_back(&place(std::move(value)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    last_end_ = end_offset();
    open_.pop_back();
    keys_.pop_back();
    return true;
  }
  bool fail(Position position, const std::string& why) {
    error = said(position) + why;
    return false;
  }

  std::string_view text_;
  Places places_;
  JsonLimits limits_;
  // An open container's address is stable: its parent grows only after the container was closed.
  std::vector<Value*> open_;
  std::vector<std::set<std::string>> keys_;  // Empty for small objects.
  std::size_t last_end_ = 0;
};

/// Returns whether a text is the same in JSON, apart from its quotes.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

void write_text(std::string& out, const std::string& text) {
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write(std::string& out, const Value& value, int indent) {
  const auto line = [&](int level) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(2 * level), ' ');
  };
  const int deeper = indent < 0 ? -1 : indent + 1;
  switch (value.kind()) {
    case Value::Kind::null:
      out += "null";
      return;
    case Value::Kind::boolean:
      out += *value.boolean() ? "true" : "false";
      return;
    case Value::Kind::integer:
      out += std::to_string(*value.integer());
      return;
    case Value::Kind::number:
      // "-0" would read back as an integer, which has no negative zero.
      out +=
          value.number() == 0 && std::signbit(value.number()) ? "-0.0" : shortest(value.number());
      return;
    case Value::Kind::text:
      write_text(out, *value.text());
      return;
    case Value::Kind::list: {
      out += '[';
      bool first = true;
      for (const auto& item : *value.list()) {
        if (!std::exchange(first, false)) out += indent < 0 ? "," : ", ";
        write(out, item, -1);
      }
      out += ']';
      return;
    }
    case Value::Kind::map: {
      out += '{';
      bool first = true;
      for (const auto& entry : *value.map()) {
        if (!std::exchange(first, false)) out += ',';
        line(deeper);
        write_text(out, entry.key);
        out += indent < 0 ? ":" : ": ";
        write(out, entry.value, deeper);
      }
      if (!first) line(indent);
      out += '}';
      return;
    }
  }
}

}  // namespace

Result<Value> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return Error{"1:1: the text has " + size_text(text.size()) + "; at most " +
                 size_text(limits.bytes) + " are read"};
  Builder builder(text, limits);
  const char* end = text.data() + text.size();
  const bool read = nlohmann::json::sax_parse(Cursor(text.data(), &builder.furthest),
                                              Cursor(end, &builder.furthest), &builder);
  if (!read) return Error{builder.error.empty() ? "1:1: this is not JSON" : builder.error};
  return std::move(builder.root);
}

std::string to_json(const Value& value) {
  std::string out;
  write(out, value, -1);
  return out;
}

std::string to_json_lines(const Value& value) {
  std::string out;
  write(out, value, 0);
  return out + "\n";
}

std::string text_of(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  if (!value) return {};
  return value->text() ? *value->text() : to_json(*value);
}

std::string shortest(double number) {
  if (!std::isfinite(number)) return "null";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

}  // namespace troupe
