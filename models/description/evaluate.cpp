// The values of expressions and templates.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/json.h"
#include "core/text.h"
#include "models/description/expression.h"

namespace troupe::models {
namespace {

using Operation = Expression::Operation;
using Node = Expression::Node;
using Integer = std::int64_t;

std::string kind_of(const Value& value) {
  return value.is_null() ? "none" : std::string(describe(value.kind()));
}

bool equal(const Value& a, const Value& b) {
  if (a.integer() && b.integer()) return *a.integer() == *b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  return a == b;
}

bool less(const Value& a, const Value& b) {
  if (a.integer() && b.integer()) return *a.integer() < *b.integer();
  return a.number() < b.number();
}

/// base ** exponent in 64 bits, or nothing if it does not fit. The exponent is not negative.
std::optional<Integer> whole_power(Integer base, Integer exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  Integer result = 1;
  for (Integer i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) return {};
  return result;
}

/// The quotient towards minus infinity, as Python's.
Integer floor_quotient(Integer a, Integer b) {
  const Integer quotient = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

/// Evaluates one expression. After the first error every function returns at once.
class Evaluator {
 public:
  Evaluator(const std::string& text, const std::vector<Node>& nodes, const Names& names)
      : text_(text), nodes_(nodes), names_(names) {}

  Value value_of(int index) {
    if (error) return {};
    const Node& node = nodes_[static_cast<std::size_t>(index)];
    names_.work(1);
    if (names_.is_exhausted()) return fail(node, "the description takes too much work to expand");
    switch (node.operation) {
      case Operation::literal:
        return node.value;
      case Operation::name:
        return named(node);
      case Operation::list_item:
        return item(node);
      case Operation::either:
        return truth(node, 0) || truth(node, 1);
      case Operation::both:
        return truth(node, 0) && truth(node, 1);
      case Operation::negation:
        return !truth(node, 0);
      case Operation::choice:
        return operand(node, truth(node, 0) ? 1 : 2);
      case Operation::equal:
        return equal(operand(node, 0), operand(node, 1));
      case Operation::unequal:
        return !equal(operand(node, 0), operand(node, 1));
      case Operation::less:
      case Operation::at_most:
      case Operation::greater:
      case Operation::at_least:
        return compared(node);
      case Operation::count: {
        Value kept;
        const Value& list = looked_up(node, 0, kept);
        if (list.list()) return static_cast<Integer>(list.list()->size());
        return fail(node, "count() takes a list, and gets " + kind_of(list));
      }
      case Operation::least:
      case Operation::greatest:
        return extreme(node);
      case Operation::root: {
        const Value x = number(node, 0);
        if (!error && x.number() < 0) return fail(node, "sqrt() of a negative number");
        return checked(node, std::sqrt(x.number()));
      }
      case Operation::minus: {
        const Value x = number(node, 0);
        return x.integer() ? calculated(node, 0, *x.integer()) : Value(-x.number());
      }
      default:
        return arithmetic(node);
    }
  }

  std::optional<Error> error;

 private:
  Value operand(const Node& node, std::size_t index) { return value_of(node.operands[index]); }

  /// Returns an operand without a copy if it is a name. Otherwise it lies in `kept`.
  const Value& looked_up(const Node& node, std::size_t index, Value& kept) {
    const Node& inner = nodes_[static_cast<std::size_t>(node.operands[index])];
    if (inner.operation == Operation::name)
      if (const Value* value = names_.find(*inner.value.text())) return *value;
    kept = operand(node, index);
    return kept;
  }

  Value fail(const Node& node, const std::string& what) {
    if (!error) error = error_in(text_, node.at, what);
    return {};
  }

  Value named(const Node& node) {
    const std::string& name = *node.value.text();
    if (const Value* value = names_.find(name)) {
      names_.work(value->list() ? static_cast<Integer>(value->list()->size()) : 0);
      return *value;
    }
    const auto near = nearest(name, names_.all());
    return fail(node, "no value has the name '" + name + "'" +
                          (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
  }

  bool truth(const Node& node, std::size_t index) {
    const Value value = operand(node, index);
    if (const auto* is = value.boolean()) return *is;
    fail(node, "a condition must be true or false, and is " + kind_of(value));
    return false;
  }

  /// Returns an operand that is a number. On an error it is 0.
  Value number(const Node& node, std::size_t index) {
    Value value = operand(node, index);
    if (value.is_number()) return value;
    fail(node, "a number is wanted here, but this is " + kind_of(value));
    return Value(Integer{0});
  }

  Value item(const Node& node) {
    Value kept;
    const Value& list = looked_up(node, 0, kept);
    const Value index = operand(node, 1);
    if (error) return {};
    if (!list.list()) return fail(node, "[...] follows a list, and this is " + kind_of(list));
    if (!index.integer())
      return fail(node, "an index is an integer, and this is " + kind_of(index));
    const auto count = static_cast<Integer>(list.list()->size());
    Integer at = *index.integer();
    if (at < 0 && at >= -count) at += count;  // From the end, as in Python.
    if (at < 0 || at >= count)
      return fail(node, "the list has " + std::to_string(count) + " entries, and none at " +
                            std::to_string(*index.integer()));
    return (*list.list())[static_cast<std::size_t>(at)];
  }

  Value compared(const Node& node) {
    const Value a = number(node, 0), b = number(node, 1);
    switch (node.operation) {
      case Operation::less:
        return less(a, b);
      case Operation::at_most:
        return !less(b, a);
      case Operation::greater:
        return less(b, a);
      default:
        return !less(a, b);
    }
  }

  Value extreme(const Node& node) {
    Value best = number(node, 0);
    for (std::size_t i = 1; i < node.operands.size(); ++i) {
      Value other = number(node, i);
      if (node.operation == Operation::least ? less(other, best) : less(best, other))
        best = std::move(other);
    }
    return error ? Value() : best;
  }

  Value arithmetic(const Node& node) {
    const Value a = number(node, 0), b = number(node, 1);
    if (error) return {};
    if (a.integer() && b.integer()) return calculated(node, *a.integer(), *b.integer());
    const double x = a.number(), y = b.number();
    switch (node.operation) {
      case Operation::sum:
        return checked(node, x + y);
      case Operation::difference:
        return checked(node, x - y);
      case Operation::product:
        return checked(node, x * y);
      case Operation::quotient:
        return checked(node, x / y);
      case Operation::floor:
        return checked(node, std::floor(x / y));
      case Operation::remainder:
        return checked(node, x - y * std::floor(x / y));
      case Operation::power:
        return b.integer() ? power_of(node, x, *b.integer())
                           : fail(node, "an exponent is an integer");
      default:
        return fail(node, "this takes integers, and one is a number with a fraction");
    }
  }

  /// Multiplies, because pow() of the C library differs between versions in the last bit.
  Value power_of(const Node& node, double base, Integer exponent) {
    constexpr Integer most = 1024;
    if (exponent < -most || exponent > most)
      return fail(node, "an exponent of a number is from -1024 to 1024");
    double result = 1;
    for (Integer i = 0; i < (exponent < 0 ? -exponent : exponent); ++i) result *= base;
    return checked(node, exponent < 0 ? 1 / result : result);
  }

  Value calculated(const Node& node, Integer a, Integer b) {
    Integer result = 0;
    bool overflows = false;
    constexpr Integer lowest = std::numeric_limits<Integer>::min();
    switch (node.operation) {
      case Operation::sum:
        overflows = __builtin_add_overflow(a, b, &result);
        break;
      case Operation::difference:
      case Operation::minus:
        overflows = __builtin_sub_overflow(a, b, &result);
        break;
      case Operation::product:
        overflows = __builtin_mul_overflow(a, b, &result);
        break;
      case Operation::quotient:
      case Operation::floor:
      case Operation::remainder:
        if (b == 0) return fail(node, "division by zero");
        if (a == lowest && b == -1) {
          overflows = node.operation != Operation::remainder;
          break;
        }
        if (node.operation == Operation::remainder) {
          result = a % b != 0 && ((a < 0) != (b < 0)) ? a % b + b : a % b;
          break;
        }
        if (node.operation == Operation::quotient && a % b != 0)
          return static_cast<double>(a) / static_cast<double>(b);
        result = floor_quotient(a, b);
        break;
      case Operation::power: {
        if (b < 0) return power_of(node, static_cast<double>(a), b);
        const auto power = whole_power(a, b);
        overflows = !power;
        result = power.value_or(0);
        break;
      }
      case Operation::ceil_to: {
        if (b <= 0) return fail(node, "ceil_to() rounds up to multiples of a positive integer");
        const Integer above = floor_quotient(a, b) + (a % b != 0 ? 1 : 0);
        overflows = __builtin_mul_overflow(above, b, &result);
        break;
      }
      default:
        break;
    }
    if (overflows) return fail(node, "the result does not fit into an integer of 64 bits");
    return result;
  }

  Value checked(const Node& node, double result) {
    if (error) return {};
    if (std::isfinite(result)) return result;
    return fail(node, "the result is no finite number");
  }

  const std::string& text_;
  const std::vector<Node>& nodes_;
  const Names& names_;
};

std::string written(const Value& value) { return value.text() ? *value.text() : to_json(value); }

}  // namespace

Result<Value> Expression::evaluate(const Names& names) const {
  Evaluator evaluator(text_, nodes_, names);
  Value value = evaluator.value_of(root_);
  if (evaluator.error) return *std::move(evaluator.error);
  return value;
}

Result<Template> Template::parse(std::string_view text) {
  Template made;
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '}') return error_in(text, at, "'}' without a '{' before it");
    if (text[at] != '{') {
      plain += text[at];
      continue;
    }
    auto end = at + 1;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != '}'); ++end)
      if (text[end] == '\'') quoted = !quoted;
    if (end >= text.size()) return error_in(text, at, "'{' without a '}' behind it");
    auto expression = Expression::parse(text.substr(at + 1, end - at - 1));
    if (!expression) return expression.error();
    if (!plain.empty()) made.pieces_.push_back({std::exchange(plain, {}), {}});
    made.pieces_.push_back({{}, {*std::move(expression)}});
    at = end;
  }
  if (!plain.empty() || made.pieces_.empty()) made.pieces_.push_back({std::move(plain), {}});
  return made;
}

Result<Value> Template::evaluate(const Names& names) const {
  std::string text;
  for (const auto& piece : pieces_) {
    if (piece.expression.empty()) {
      text += piece.text;
      continue;
    }
    const auto value = piece.expression.front().evaluate(names);
    if (!value) return value.error();
    if (value->is_null() && pieces_.size() == 1) return Value();
    if (value->is_null()) return Error{"none cannot be a part of a text"};
    text += written(*value);
  }
  return Value(std::move(text));
}

}  // namespace troupe::models
