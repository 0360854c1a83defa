#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "models/description/description.h"

namespace troupe::models {

/// Keeps the first fault of a description that is being read, and reads what occurs in all parts
/// of it. After a fault every function returns something empty.
struct FaultSink {
  std::optional<Fault> fault;

  void fail(const Value& at, std::string path, std::string what);
  /// Refuses keys of a table that are not among these.
  void check_keys(const Value& table, const std::string& path,
                  const std::vector<std::string_view>& keys);
  PlacedFormula parse(const Value& value, const std::string& path, Formula::Texts texts);
  /// Reads names with formulas: a table, or a list of tables.
  void read_let(const Value* let, const std::string& path, std::vector<NamedFormula>& into);
};

/// The options that `every` gives to all steps of a kind.
class Defaults {
 public:
  Defaults(const Value* every, FaultSink& sink);

  /// Returns one formula, or null, for each option of the kind.
  const std::vector<std::shared_ptr<const PlacedFormula>>& of(const StepKind& kind) const;

 private:
  void take_any(const Value* any, FaultSink& sink);
  void take_kind(const Value::Entry& entry, FaultSink& sink);
  void take(const Value& table, const std::string& path, const StepKind& kind, FaultSink& sink);

  std::map<std::string_view, std::vector<std::shared_ptr<const PlacedFormula>>> by_kind_;
};

/// Reads a list of steps.
std::vector<Step> read_steps(const Value& list, const std::string& path, const Defaults& defaults,
                             FaultSink& sink);

}  // namespace troupe::models
