#include "models/description/formula.h"

#include <utility>

namespace troupe::models {

Result<Formula> Formula::parse_init(std::string_view text) {
  Formula formula;
  if (text == "none") return formula;
  formula.list_.emplace();
  const auto open = text.find('(');
  const auto word = text.substr(0, open);
  formula.list_->emplace_back().constant_ = Value(word);
  if (text == "zeros" || text == "ones") return formula;
  if ((word != "normal" && word != "uniform") || open == text.npos || !text.ends_with(')'))
    return Error{
        "weights begin as \"normal(deviation)\", \"uniform(bound)\", \"zeros\" or \"ones\""};
  auto scale = Expression::parse(text.substr(open + 1, text.size() - open - 2));
  if (!scale) return scale.error();
  formula.list_->emplace_back().expression_ = *std::move(scale);
  return formula;
}

Result<Formula> Formula::parse_text(const std::string& text, Texts texts) {
  if (texts == Texts::inits) return parse_init(text);
  Formula formula;
  if (texts == Texts::expressions) {
    auto parsed = Expression::parse(text);
    if (!parsed) return parsed.error();
    formula.expression_ = *std::move(parsed);
  } else {
    auto parsed = Template::parse(text);
    if (!parsed) return parsed.error();
    formula.template_ = *std::move(parsed);
  }
  return formula;
}

Result<Formula> Formula::parse(const Value& value, Texts texts) {
  Formula formula;
  if (const auto* text = value.text()) return parse_text(*text, texts);
  if (const auto* list = value.list()) {
    formula.list_.emplace();
    for (const auto& item : *list) {
      auto parsed = parse(item, texts);
      if (!parsed) return parsed.error();
      formula.list_->push_back(*std::move(parsed));
    }
  } else if (value.map()) {
    return Error{"a value is wanted, and this is a table"};
  } else {
    formula.constant_ = value;
  }
  return formula;
}

Result<Value> Formula::evaluate(const Names& names) const {
  if (expression_) return expression_->evaluate(names);
  if (template_) return template_->evaluate(names);
  if (!list_) return constant_;
  Value::List items;
  for (const auto& formula : *list_) {
    auto item = formula.evaluate(names);
    if (!item) return item.error();
    if (!item->is_null()) items.push_back(*std::move(item));
  }
  return Value(std::move(items));
}

}  // namespace troupe::models
