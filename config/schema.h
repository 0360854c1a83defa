#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/dotted.h"
#include "config/schema/key.h"
#include "core/value.h"
#include "models/description/model_kind.h"

namespace troupe::config {

/// The table of all keys. Validation, messages, the reference page, the JSON schema and the shell
/// completion use it. A name may have several rows, of which at most one applies to a tree.
class Schema {
 public:
  Schema();
  /// Makes the table for a model of one's own, which has no keys of the kinds that the program
  /// comes with.
  explicit Schema(models::ModelKind own);
  Schema(const Schema&) = delete;  // The rows have views of the kind's names.
  Schema& operator=(const Schema&) = delete;

  const std::vector<Key>& keys() const { return keys_; }
  /// Returns the row with this name that applies to a tree, or null.
  const Key* find(std::string_view name, const Value& tree) const;
  /// Returns all rows with this name.
  std::vector<const Key*> rows(std::string_view name) const;
  /// Returns whether this is the name of a table.
  bool is_table(std::string_view name) const;
  /// Returns whether a row applies to a tree.
  bool applies(const Key& key, const Value& tree) const;
  /// Returns the value that a condition tests: the written one or the default.
  const Value& decider(const Condition& condition, const Value& tree) const;
  /// Returns the full names allowed in a table ("batch.global"), in the order of the schema.
  std::vector<std::string_view> names_in(std::string_view table, const Value& tree) const;
  /// Returns the description of a table, or an empty text.
  std::string_view help_of(std::string_view table) const;

 private:
  std::optional<models::ModelKind> own_;
  std::vector<Key> keys_;
};

/// Returns the schema of configurations whose model is one that the program comes with.
const Schema& schema();

/// Returns the schema that applies to a tree. If it has a good model.description, that is one with
/// the options of its own model.
std::shared_ptr<const Schema> schema_for(const Value& tree);

/// Returns whether the upper bound is so high that wanted() omits it.
bool bound_is_untold(const Key& key);

/// Writes a bound, without a fraction if it is whole.
std::string number_text(double number);

/// Describes the values that a key accepts: "an integer from 1 to 4096", "one of sgd, adam, ...".
std::string wanted(const Key& key);

}  // namespace troupe::config
