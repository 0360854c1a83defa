#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema/dotted.h"
#include "config/schema/key.h"
#include "core/value.h"

namespace troupe::config {

/// The one table of keys. Validation, messages, the reference page, the JSON schema and the shell
/// completion are made from it. A name may have several rows, of which at most one applies.
class Schema {
 public:
  Schema();

  const std::vector<Key>& keys() const { return keys_; }
  /// The row of that name that applies to a tree; null where there is none.
  const Key* find(std::string_view name, const Value& tree) const;
  /// All rows of that name.
  std::vector<const Key*> rows(std::string_view name) const;
  /// Whether keys stand below that name.
  bool is_table(std::string_view name) const;
  /// Whether a row exists in a tree.
  bool applies(const Key& key, const Value& tree) const;
  /// The value that a condition looks at: as it was written, or else the default.
  const Value& decider(const Condition& condition, const Value& tree) const;
  /// The names one may write in a table, whole ("batch.global"), in the order of the schema.
  std::vector<std::string_view> names_in(std::string_view table, const Value& tree) const;
  /// One sentence on a table; empty where it has none.
  std::string_view help_of(std::string_view table) const;

 private:
  std::vector<Key> keys_;
};

/// The one that there is.
const Schema& schema();

/// Whether the upper bound is so high that wanted() leaves it out.
bool bound_is_untold(const Key& key);

/// A bound as one writes it: whole where it is.
std::string number_text(double number);

/// "an integer from 1 to 4096", "one of sgd, adam, ...": what a key wants, for messages.
std::string wanted(const Key& key);

}  // namespace troupe::config
