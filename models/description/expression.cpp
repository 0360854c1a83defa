#include "models/description/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace troupe::models {
namespace {

using Operation = Expression::Operation;
using Node = Expression::Node;

constexpr std::size_t longest_quoted = 60;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

struct Function {
  std::string_view name;
  Operation operation;
  std::size_t least, most;  // The numbers of arguments.
};

constexpr std::array functions{
    Function{"if", Operation::choice, 3, 3},  Function{"count", Operation::count, 1, 1},
    Function{"min", Operation::least, 1, 16}, Function{"max", Operation::greatest, 1, 16},
    Function{"sqrt", Operation::root, 1, 1},  Function{"ceil_to", Operation::ceil_to, 2, 2},
};

struct Sign {
  std::string_view text;
  Operation operation;
};
/// The operators of each level that takes a left and a right side. The longer texts come first.
constexpr std::array comparisons{Sign{"==", Operation::equal},   Sign{"!=", Operation::unequal},
                                 Sign{"<=", Operation::at_most}, Sign{">=", Operation::at_least},
                                 Sign{"<", Operation::less},     Sign{">", Operation::greater}};
constexpr std::array sums{Sign{"+", Operation::sum}, Sign{"-", Operation::difference}};
constexpr std::array products{Sign{"//", Operation::floor}, Sign{"*", Operation::product},
                              Sign{"/", Operation::quotient}, Sign{"%", Operation::remainder}};

/// A parser by recursive descent. After the first error every function returns at once.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  int parse_all() {
    const int root = parse_either();
    skip_blanks();
    if (!error_ && at_ < text_.size()) fail(at_, "an operator is missing, or this is too much");
    return root;
  }

  std::optional<Error> error_;
  std::vector<Node> nodes_;

 private:
  int parse_either() {
    const Deeper deeper(*this);
    int left = parse_both();
    while (take_word("or")) left = add(Operation::either, word_at_, {left, parse_both()});
    return left;
  }
  int parse_both() {
    int left = parse_negation();
    while (take_word("and")) left = add(Operation::both, word_at_, {left, parse_negation()});
    return left;
  }
  int parse_negation() {
    const Deeper deeper(*this);
    if (!take_word("not")) return parse_comparison();
    const auto at = word_at_;
    return add(Operation::negation, at, {parse_negation()});
  }
  int parse_comparison() {
    const int left = parse_sum();
    const auto operation = take_sign(comparisons);
    if (!operation) return left;
    const auto at = sign_at_;
    const int both = add(*operation, at, {left, parse_sum()});
    if (take_sign(comparisons)) fail(sign_at_, "comparisons do not chain; join two by 'and'");
    return both;
  }
  int parse_sum() {
    int left = parse_product();
    while (const auto operation = take_sign(sums)) {
      const auto at = sign_at_;
      left = add(*operation, at, {left, parse_product()});
    }
    return left;
  }
  int parse_product() {
    int left = parse_minus();
    while (!looks_at("**")) {
      const auto operation = take_sign(products);
      if (!operation) break;
      const auto at = sign_at_;
      left = add(*operation, at, {left, parse_minus()});
    }
    return left;
  }
  int parse_minus() {
    const Deeper deeper(*this);
    if (!take("-")) return parse_power();
    const auto at = sign_at_;
    return add(Operation::minus, at, {parse_minus()});
  }
  int parse_power() {
    const int base = parse_item();
    if (!take("**")) return base;
    const auto at = sign_at_;
    return add(Operation::power, at, {base, parse_minus()});  // From the right, as in Python.
  }
  int parse_item() {
    int value = parse_operand();
    while (take("[")) {
      const auto at = sign_at_;
      const int index = parse_either();
      value = add(Operation::list_item, at, {value, index});
      if (!take("]")) fail(at_, "']' is missing");
    }
    return value;
  }

  int parse_operand() {
    skip_blanks();
    if (error_) return 0;
    if (at_ == text_.size()) return fail(at_, "an operand is missing");
    const char c = text_[at_];
    if (take("(")) {
      const int inner = parse_either();
      if (!take(")")) fail(at_, "')' is missing");
      return inner;
    }
    if (is_digit(c) || c == '.') return parse_number();
    if (c == '\'') return parse_text();
    if (is_letter(c)) return parse_word();
    return fail(at_, "an operand is missing");
  }

  int parse_number() {
    const auto begin = at_;
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    std::int64_t whole = 0;
    double number = 0;
    const auto as_whole = std::from_chars(first, last, whole);
    const auto as_number = std::from_chars(first, last, number);
    if (as_number.ec != std::errc() || as_number.ptr < as_whole.ptr)
      return fail(begin, "this is no number of 64 bits");
    const bool is_whole = as_whole.ptr == as_number.ptr;
    if (is_whole && as_whole.ec != std::errc()) return fail(begin, "this is no integer of 64 bits");
    at_ = static_cast<std::size_t>(as_number.ptr - text_.data());
    if (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_])))
      return fail(begin, "a number ends in a letter");
    return literal(begin, is_whole ? Value(whole) : Value(number));
  }

  int parse_text() {
    const auto begin = at_;
    const auto end = text_.find('\'', begin + 1);
    if (end == text_.npos) return fail(begin, "the text has no second '");
    at_ = end + 1;
    return literal(begin, text_.substr(begin + 1, end - begin - 1));
  }

  int parse_word() {
    const auto begin = at_;
    const auto word = peek_word();
    at_ += word.size();
    if (word == "true" || word == "false") return literal(begin, word == "true");
    if (word == "none") return literal(begin, Value());
    if (word == "or" || word == "and" || word == "not")
      return fail(begin, "an operand is missing before '" + std::string(word) + "'");
    const auto function = std::ranges::find(functions, word, &Function::name);
    if (!looks_at("(")) {
      if (function != functions.end())
        return fail(begin, "'" + std::string(word) + "' is a function: write its arguments in ( )");
      const int name = add(Operation::name, begin, {});
      if (!error_) nodes_.back().value = Value(word);
      return name;
    }
    if (function == functions.end())
      return fail(begin, "there is no function '" + std::string(word) +
                             "'; there are if, count, min, max, sqrt and ceil_to");
    take("(");
    std::vector<int> arguments{parse_either()};
    while (!error_ && take(",")) arguments.push_back(parse_either());
    if (!take(")")) fail(at_, "')' is missing");
    if (arguments.size() < function->least || arguments.size() > function->most)
      fail(begin,
           "'" + std::string(word) + "' takes " + std::to_string(function->least) +
               (function->least == function->most ? "" : " to " + std::to_string(function->most)) +
               (function->most == 1 ? " argument" : " arguments") + ", and gets " +
               std::to_string(arguments.size()));
    return add(function->operation, begin, std::move(arguments));
  }

  int literal(std::size_t at, Value value) {
    const int node = add(Operation::literal, at, {});
    if (!error_) nodes_.back().value = std::move(value);
    return node;
  }

  int add(Operation operation, std::size_t at, std::vector<int> operands) {
    if (error_) return 0;
    if (nodes_.size() >= Expression::most_nodes)
      return fail(at, "an expression has at most " + std::to_string(Expression::most_nodes) +
                          " numbers, names and operators");
    nodes_.push_back({operation, at, {}, std::move(operands)});
    return static_cast<int>(nodes_.size()) - 1;
  }

  int fail(std::size_t at, const std::string& what) {
    if (!error_) error_ = error_in(text_, at, what);
    return 0;
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool looks_at(std::string_view sign) {
    skip_blanks();
    return !error_ && text_.substr(at_).starts_with(sign);
  }
  bool take(std::string_view sign) {
    if (!looks_at(sign)) return false;
    sign_at_ = std::exchange(at_, at_ + sign.size());
    return true;
  }
  template <std::size_t count>
  std::optional<Operation> take_sign(const std::array<Sign, count>& signs) {
    for (const auto& sign : signs)
      if (take(sign.text)) return sign.operation;
    return {};
  }
  std::string_view peek_word() {
    skip_blanks();
    auto end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || (end > at_ && is_digit(text_[end]))))
      ++end;
    return text_.substr(at_, end - at_);
  }
  bool take_word(std::string_view word) {
    if (error_ || peek_word() != word) return false;
    word_at_ = std::exchange(at_, at_ + word.size());
    return true;
  }

  /// Counts how deep the parser is, so that no text exhausts the stack.
  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) {
      // Three levels of rules belong to one level of brackets.
      if (++parser_.depth_ > 3 * Expression::most_depth)
        parser_.fail(parser_.at_, "an expression has at most " +
                                      std::to_string(Expression::most_depth) +
                                      " brackets or signs inside each other");
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };

  std::string_view text_;
  std::size_t at_ = 0, sign_at_ = 0, word_at_ = 0;
  int depth_ = 0;
};

}  // namespace

Error error_in(std::string_view text, std::size_t at, const std::string& what) {
  std::string shown(text.substr(0, longest_quoted));
  if (shown.size() < text.size()) shown += "...";
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return {"character " + std::to_string(at + 1) + " of \"" + shown + "\": " + what};
}

Result<Expression> Expression::parse(std::string_view text) {
  if (text.size() > most_characters)
    return error_in(text, most_characters,
                    "an expression has at most " + std::to_string(most_characters) + " characters");
  Parser parser(text);
  const int root = parser.parse_all();
  if (parser.error_) return *std::move(parser.error_);
  Expression expression;
  expression.text_ = std::string(text);
  expression.nodes_ = std::move(parser.nodes_);
  expression.root_ = root;
  return expression;
}

}  // namespace troupe::models
