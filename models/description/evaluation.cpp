#include "models/description/evaluation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json.h"

namespace troupe::models {
namespace {

using Type = StepOption::Type;

bool lies_within(const StepOption& option, const Value& value) {
  return value.number() >= option.least && value.number() <= option.most;
}

/// Makes an integer of a number that is whole.
void round_if_whole(Value& value) {
  constexpr double most_exact = 1e15;
  if (value.kind() != Value::Kind::number) return;
  const double number = value.number();
  if (std::abs(number) <= most_exact && number == std::floor(number))
    value = Value(static_cast<std::int64_t>(number));
}

bool is_init(const Value& value) {
  constexpr double most_scale = 1e6;
  const auto* parts = value.list();
  if (!parts || parts->empty() || !parts->front().text()) return false;
  const std::string& word = *parts->front().text();
  if (word == "zeros" || word == "ones") return parts->size() == 1;
  return parts->size() == 2 && (*parts)[1].is_number() && (*parts)[1].number() >= 0 &&
         (*parts)[1].number() <= most_scale;
}

bool fits(const StepOption& option, const Value& value) {
  switch (option.type) {
    case Type::integer:
      return value.integer() && lies_within(option, value);
    case Type::number:
      return value.is_number() && lies_within(option, value);
    case Type::boolean:
      return value.boolean();
    case Type::choice:
      return value.text() && std::ranges::count(option.among, *value.text()) > 0;
    case Type::text:
    case Type::value:
      return value.text() && is_parameter_name(*value.text());
    case Type::texts:
      return value.list() && std::ranges::all_of(*value.list(), [](const Value& item) {
               return item.text() && is_parameter_name(*item.text());
             });
    case Type::init:
      return is_init(value);
    case Type::steps:
      break;
  }
  return false;
}

}  // namespace

bool is_parameter_name(std::string_view name) {
  if (name.empty() || name.size() > bounds::name || name.starts_with("__")) return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:").find(c) != std::string_view::npos;
  });
}

void Evaluation::fail(const Place& at, std::string what) {
  if (!fault) fault = Fault{.at = at, .message = std::move(what)};
}

Value Evaluation::value(const PlacedFormula& formula) {
  if (fault) return {};
  auto value = formula.formula.evaluate(names);
  if (value) return *std::move(value);
  fail(formula.place, value.error().text);
  return {};
}

std::int64_t Evaluation::integer(const PlacedFormula& formula, std::string_view what) {
  Value found = value(formula);
  round_if_whole(found);
  if (found.integer()) return *found.integer();
  if (!fault) fail(formula.place, std::string(what) + " is an integer, and not " + to_json(found));
  return 0;
}

bool Evaluation::truth(const PlacedFormula& formula) {
  const Value found = value(formula);
  if (found.boolean()) return *found.boolean();
  if (!fault) fail(formula.place, "a condition is true or false, and not " + to_json(found));
  return false;
}

std::string Evaluation::text(const PlacedFormula& formula, std::string_view what) {
  const Value found = value(formula);
  if (found.text()) return *found.text();
  if (!fault) fail(formula.place, std::string(what) + " is a text, and not " + to_json(found));
  return {};
}

void Evaluation::let(const std::vector<NamedFormula>& values) {
  for (const auto& [name, formula] : values) names.add(name, value(formula));
}

StepOptions Evaluation::options_of(const Step& step) {
  std::vector<Value> values;
  for (std::size_t row = 0; row < step.kind->options.size(); ++row) {
    const auto& option = step.kind->options[row];
    const auto& given = step.options[row];
    Value found = given ? value(*given) : Value();
    if (found.is_null()) {
      if (option.presence == StepOption::Presence::required && option.type != Type::steps)
        fail(step.place, std::string(step.kind->name) + " needs " + std::string(option.name) +
                             ", " + wanted(option));
      values.push_back(option.fallback);
      continue;
    }
    if (option.type == Type::integer) round_if_whole(found);
    if (!fits(option, found))
      fail(given->place, std::string(option.name) + " of " + std::string(step.kind->name) + " is " +
                             wanted(option) + ", and not " + to_json(found));
    values.push_back(std::move(found));
  }
  return {step.kind->options, std::move(values)};
}

}  // namespace troupe::models
