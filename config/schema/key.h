#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::config {

/// The type of a key's value.
enum class Type {
  integer,
  number,
  boolean,
  switches,  // A boolean, or a list of them
  text,
  choice,         // One of `Key::choices`.
  texts,          // A list.
  integers,       // A list.
  numbers,        // A list of `Key::length`.
  duration,       // "5m"
  interval,       // "100 steps", or a duration
  range,          // "1:8", or one integer
  count_or_auto,  // An integer, or "auto"
  bytes_or_auto,  // "2GiB", or "auto"
  stages,         // An integer, "auto", or boundaries: [0, 3, 6]
  description,    // A table: the description of a model of one's own
  groups,         // A list of tables with the keys of section::parameter_group_fields().
};

/// The part of a configuration to which a key belongs.
enum class Half {
  recipe,  // Affects the results of training.
  plan,    // Affects where, when and how fast; never a number.
  shape,   // Plan in a synchronous run, recipe in an asynchronous one.
};

/// Whether `run.set` may change a key during a run.
enum class Change { at_start, live };

/// A condition for a key: another key has one of these values.
struct Condition {
  std::string_view key;  // Empty: the key always exists.
  std::vector<std::string_view> values;
};

/// A row of the schema.
struct Key {
  enum class Presence { required, optional };

  std::string name;  // Dotted: "optimizer.schedule.kind".
  Type type = Type::integer;
  Presence presence = Presence::optional;
  Value fallback = {};  // The default as written; null if a missing key has a meaning of its own.
  double least = 0;
  double most = 1e9;
  std::vector<std::string_view> choices = {};
  std::size_t length = 0;  // The length of a list of numbers.
  Half half = Half::plan;
  Change change = Change::at_start;
  std::string_view help = {};  // One sentence.
  Condition when = {};
  bool is_later = false;  // A recipe leaves the key out if it has its default.

  std::string_view section() const;  // "optimizer.schedule"; empty at the top.
  std::string_view leaf() const;     // "kind"
};

}  // namespace troupe::config
