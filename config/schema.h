#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::config {

/// What may stand behind a key.
enum class Type {
  integer,
  number,
  boolean,
  switches,  // A boolean, or a list of them
  text,
  choice,         // One of `Key::choices`.
  integers,       // A list.
  numbers,        // A list of `Key::length`.
  duration,       // "5m"
  interval,       // "100 steps", or a duration
  range,          // "1:8", or one integer
  count_or_auto,  // An integer, or "auto"
  bytes_or_auto,  // "2GiB", or "auto"
  stages,         // An integer, "auto", or boundaries: [0, 3, 6]
};

/// Which half of a configuration a key belongs to.
enum class Half {
  recipe,  // Changes what is computed.
  plan,    // Changes where, when and how fast; never a number.
  shape,   // Plan in a synchronous run. In an asynchronous one the pipeline's shape is recipe.
};

/// Whether a key may be set while the run is under way (`run.set`).
enum class Change { at_start, live };

/// A key that only exists where another one has one of these values.
struct Condition {
  std::string_view key;  // Empty: always there.
  std::vector<std::string_view> values;
};

/// A row of the schema.
struct Key {
  enum class Presence { required, optional };

  std::string name;  // Dotted: "optimizer.schedule.kind".
  Type type = Type::integer;
  Presence presence = Presence::optional;
  Value fallback = {};  // As one would write it; null where leaving it out means something itself.
  double least = 0;
  double most = 1e9;
  std::vector<std::string_view> choices = {};
  std::size_t length = 0;  // Of a list of numbers.
  Half half = Half::plan;
  Change change = Change::at_start;
  std::string_view help = {};  // One sentence.
  Condition when = {};

  std::string_view section() const;  // "optimizer.schedule"; empty at the top.
  std::string_view leaf() const;     // "kind"
};

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

/// The value at a dotted name; null where there is none.
const Value* value_at(const Value& tree, std::string_view name);
/// Sets the value at a dotted name; tables on the way are made.
void set_at(Value& tree, std::string_view name, Value value);

}  // namespace troupe::config
