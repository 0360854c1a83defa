#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/description/names.h"

namespace troupe::models {

/// A formula of a model description, such as "4 * width". It has the operators of Python with
/// their binding, and these parts:
///
///     or   and   not   == != < <= > >=   + -   * / // %   - (sign)   **   x[i]   f(...)
///     numbers, 'text', true, false, none, names
///     if(condition, then, else)   count(list)   min(...)   max(...)   sqrt(x)   ceil_to(x, step)
///
/// Integers have 64 bits, and a result that does not fit is an error. The quotient of two integers
/// is an integer if it is whole, else a number. `or`, `and` and `if` evaluate only what they need.
/// Comparisons do not chain.
///
/// An expression may come from another machine: its length, depth and number of nodes are bounded.
class Expression {
 public:
  static constexpr std::size_t most_characters = 4096;
  static constexpr std::size_t most_nodes = 256;
  static constexpr int most_depth = 32;

  /// Errors name the character: "character 5 of '4 * ': an operand is missing".
  static Result<Expression> parse(std::string_view text);

  /// Returns an integer, a number, a boolean, a text, a list, or null for `none`.
  Result<Value> evaluate(const Names& names) const;

  enum class Operation : std::uint8_t {
    literal,
    name,
    list_item,
    either,
    both,
    negation,
    equal,
    unequal,
    less,
    at_most,
    greater,
    at_least,
    sum,
    difference,
    product,
    quotient,
    floor,
    remainder,
    power,
    minus,
    choice,
    count,
    least,
    greatest,
    root,
    ceil_to
  };
  struct Node {
    Operation operation = Operation::literal;
    std::size_t at = 0;  // The first character of the operator or word.
    Value value;         // The value of a literal, or the text of a name.
    std::vector<int> operands;
  };

 private:
  std::string text_;
  std::vector<Node> nodes_;
  int root_ = 0;
};

/// A text with expressions in braces: "h.{i}".
class Template {
 public:
  static Result<Template> parse(std::string_view text);

  /// Returns the text, or null if the whole template is one expression that gives `none`.
  Result<Value> evaluate(const Names& names) const;

 private:
  struct Piece {
    std::string text;
    std::vector<Expression> expression;  // One, or none for plain text.
  };
  std::vector<Piece> pieces_;
};

/// Returns the error of a text in which something is wrong at a character, counted from 0.
Error error_in(std::string_view text, std::size_t at, const std::string& what);

}  // namespace troupe::models
