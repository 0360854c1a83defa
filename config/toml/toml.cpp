#include "config/toml/toml.h"

#include <algorithm>
#include <cmath>

#include "config/toml/toml_guard.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::config {
namespace {

/// A failed assertion of the library. Input can cause it: "[[[" does.
struct BrokenAssumption {};

}  // namespace
}  // namespace troupe::config

// The library is compiled only here. Nesting is limited, because trees are destroyed recursively.
#undef NDEBUG
#define TOML_EXCEPTIONS 1
#define TOML_MAX_NESTED_VALUES 32
#define TOML_ASSERT(expression) \
  static_cast<void>((expression) ? 0 : throw troupe::config::BrokenAssumption())
#pragma GCC diagnostic push
#if !defined(__clang__)
// Some assertions are in noexcept functions. Input that would break them is refused before.
#pragma GCC diagnostic ignored "-Wterminate"
#endif
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace troupe::config {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;

std::string said(Position position) {
  return std::to_string(position.line) + ":" + std::to_string(position.column) + ": ";
}

/// Converts the library's tree to ours.
class Converter {
 public:
  explicit Converter(std::string_view text) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      lines_.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  /// Converts a position. The library counts characters, and we count bytes.
  Position position(toml::source_position from) const {
    const Position whole{static_cast<int>(from.line), static_cast<int>(from.column)};
    if (from.line == 0 || from.line > lines_.size()) return whole;
    const auto line = lines_[from.line - 1];
    int characters = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if ((line[i] & 0xc0) == 0x80) continue;  // Inside a character.
      if (++characters == whole.column) return {whole.line, static_cast<int>(i) + 1};
    }
    return whole;
  }

  Value value(const toml::node& node) {
    Value made;
    if (const auto* table = node.as_table())
      made = map(*table);
    else if (const auto* array = node.as_array())
      made = list(*array);
    else if (const auto* text = node.as_string())
      made = Value(text->get());
    else if (const auto* whole = node.as_integer())
      made = Value(whole->get());
    else if (const auto* number = node.as_floating_point())
      made = Value(number->get());
    else if (const auto* truth = node.as_boolean())
      made = Value(truth->get());
    else
      note_date(node);
    made.position = position(node.source().begin);
    return made;
  }

  std::string error;

 private:
  Value map(const toml::table& table) {
    Value::Map entries;
    for (const auto& [key, node] : table)
      entries.push_back({std::string(key.str()), value(node), position(key.source().begin)});
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::pair(a.position.line, a.position.column) <
             std::pair(b.position.line, b.position.column);
    });
    return entries;
  }
  Value list(const toml::array& array) {
    Value::List items;
    for (const auto& node : array) items.push_back(value(node));
    return items;
  }
  void note_date(const toml::node& node) {
    if (error.empty())
      error = said(position(node.source().begin)) +
              "no key takes a date or a time; put quotes around it if it is a text";
  }

  std::vector<std::string_view> lines_;
};

void write_text(std::string& out, std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (code < 0x20 || code == 0x7f)
      ((out += "\\u00") += digits[code >> 4]) += digits[code & 15];
    else
      out += c;
  }
  out += '"';
}

/// Writes a number in the shortest form that is not an integer: "0.5", "3e-4", "1.0".
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = shortest(number);
  const auto exponent = text.find('e');
  if (exponent == text.npos) return text.find('.') == text.npos ? text + ".0" : text;
  const auto first = exponent + 2;  // After the sign.
  const auto zeros = std::min(text.find_first_not_of('0', first), text.size() - 1) - first;
  return text.erase(first, zeros);
}

void write(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
      out += "{}";
      return;
    case Value::Kind::boolean:
      out += *value.boolean() ? "true" : "false";
      return;
    case Value::Kind::integer:
      out += std::to_string(*value.integer());
      return;
    case Value::Kind::number:
      out += number_text(value.number());
      return;
    case Value::Kind::text:
      write_text(out, *value.text());
      return;
    case Value::Kind::list: {
      std::string_view separator = "[";
      for (const auto& item : *value.list()) {
        out += std::exchange(separator, ", ");
        write(out, item);
      }
      out += value.list()->empty() ? "[]" : "]";
      return;
    }
    case Value::Kind::map: {
      std::string_view separator = "{ ";
      for (const auto& entry : *value.map()) {
        (out += std::exchange(separator, ", ")) += to_toml_key(entry.key) + " = ";
        write(out, entry.value);
      }
      out += value.map()->empty() ? "{}" : " }";
      return;
    }
  }
}

}  // namespace

Result<Value> parse_toml(std::string_view text) {
  if (text.size() > most_bytes)
    return Error{"1:1: the text has " + size_text(text.size()) + "; at most " +
                 size_text(most_bytes) + " are read"};
  if (const auto trouble = find_toml_trouble(text))
    return Error{said(trouble->position) + "this is not TOML: " + trouble->why};
  Converter converter(text);
  try {
    Value tree = converter.value(toml::parse(text));
    if (!converter.error.empty()) return Error{converter.error};
    return tree;
  } catch (const toml::parse_error& error) {
    std::string why(error.description());
    constexpr std::string_view opening = "Error while parsing ";
    if (why.starts_with(opening)) why.erase(0, opening.size());
    return Error{said(converter.position(error.source().begin)) + "this is not TOML: " + why};
  } catch (const BrokenAssumption&) {
    return Error{
        "1:1: this is not TOML, and its reader cannot say where; look for a bracket too many"};
  }
}

std::string to_toml(const Value& value) {
  std::string out;
  write(out, value);
  return out;
}

std::string to_toml_key(std::string_view key) {
  if (!key.empty() && std::all_of(key.begin(), key.end(), is_bare_key_character))
    return std::string(key);
  std::string out;
  write_text(out, key);
  return out;
}

}  // namespace troupe::config
