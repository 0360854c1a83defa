#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/description/description.h"

namespace troupe::models {

/// Returns whether a text can be the name of a parameter.
bool is_parameter_name(std::string_view name);

/// Evaluates the formulas of a description, and keeps the first fault. After a fault every
/// function returns something empty.
class Evaluation {
 public:
  Names names;
  std::optional<Fault> fault;

  void fail(const Place& at, std::string what);

  Value value(const PlacedFormula& formula);
  std::int64_t integer(const PlacedFormula& formula, std::string_view what);
  bool truth(const PlacedFormula& formula);
  std::string text(const PlacedFormula& formula, std::string_view what);
  /// Adds named values to the names, one after another.
  void let(const std::vector<NamedFormula>& values);

  /// Returns the options of a step, checked against the rows of its kind. The error of a value
  /// that does not fit stands at the value.
  StepOptions options_of(const Step& step);
};

}  // namespace troupe::models
