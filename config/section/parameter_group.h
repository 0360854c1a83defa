#pragma once

#include <string>
#include <vector>

#include "config/schema/fields.h"
#include "core/value.h"
#include "models/train/parameter_groups.h"

namespace troupe::config::section {

/// Returns the keys of one table in `optimizer.group`. Their names are relative to it.
inline Fields<models::ParameterGroup> parameter_group_fields() {
  using models::ParameterGroup;
  using enum Half;
  return {
      {{.name = "match",
        .type = Type::texts,
        .presence = Key::Presence::required,
        .half = recipe,
        .help = "Patterns over the names of parameters: * stands for any text, ? for one "
                "character."},
       [](const Value& value, ParameterGroup& into) {
         for (const auto& pattern : *value.list()) into.match.push_back(*pattern.text());
       }},
      {{.name = "weight_decay",
        .type = Type::number,
        .most = 1e3,
        .half = recipe,
        .help = "In place of optimizer.weight_decay."},
       [](const Value& value, ParameterGroup& into) { into.weight_decay = value.number(); }},
      field(&ParameterGroup::frozen, {.name = "frozen",
                                      .type = Type::boolean,
                                      .fallback = false,
                                      .half = recipe,
                                      .help = "Leave the parameters as they are."}),
      field(&ParameterGroup::lr, {.name = "lr",
                                  .type = Type::number,
                                  .fallback = 1.0,
                                  .least = 1e-9,
                                  .most = 1e6,
                                  .half = recipe,
                                  .help = "Factor on the learning rate of every step."}),
  };
}

/// Reads a valid `optimizer.group`.
inline std::vector<models::ParameterGroup> read_groups(const Value& tables) {
  std::vector<models::ParameterGroup> groups;
  for (const auto& table : *tables.list())
    read_fields(table, parameter_group_fields(), groups.emplace_back());
  return groups;
}

/// Returns whether a value is its key's default, however it is written.
inline bool says_default(const Key& key, const Value& value) {
  if (key.fallback.is_null()) return false;
  return value.is_number() ? value.number() == key.fallback.number() : value == key.fallback;
}

/// Returns the tables in the order of the keys, without those that have their default, so that
/// groups which say the same are equal.
inline Value canonical_groups(const Value& tables) {
  Value::List groups;
  for (const auto& table : *tables.list()) {
    Value group;
    for (const auto& [key, read] : parameter_group_fields())
      if (const Value* value = table.find(key.name); value && !says_default(key, *value))
        group.set(key.name, value->is_number() ? Value(value->number()) : *value);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace troupe::config::section
