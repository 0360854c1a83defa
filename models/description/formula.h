#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/description/expression.h"

namespace troupe::models {

/// A value of a description that may depend on names: a constant, an expression, a template, or a
/// list of these.
class Formula {
 public:
  /// How to read a text in the value.
  enum class Texts {
    expressions,
    templates,
    inits,  // "normal(0.02 / sqrt(layers))": a list of the word and the value of the expression.
  };

  static Result<Formula> parse(const Value& value, Texts texts);

  /// Leaves `none` out of a list.
  Result<Value> evaluate(const Names& names) const;

 private:
  static Result<Formula> parse_text(const std::string& text, Texts texts);
  static Result<Formula> parse_init(std::string_view text);

  Value constant_;
  std::optional<Expression> expression_;
  std::optional<Template> template_;
  std::optional<std::vector<Formula>> list_;
};

}  // namespace troupe::models
