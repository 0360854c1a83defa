#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "config/run_config.h"
#include "config/toml/diagnostics.h"
#include "core/value.h"

namespace troupe::config {

/// A configuration whose keys were checked one by one, and where complaints about them go.
struct Examined {
  const RunConfig& config;
  const Value& tree;  // Complete.
  Diagnostics& found;

  /// At the first of these keys that somebody wrote.
  void error(std::initializer_list<std::string_view> keys, std::string message,
             std::string hint = {}) const;
  void warn(std::initializer_list<std::string_view> keys, std::string message,
            std::string hint = {}) const;
};

/// Whether the keys agree with one another: arithmetic, names, and what needs what.
void check_agreement(const Examined& examined);

/// The part of it that is about asynchronous schedules.
void check_staleness(const Examined& examined);

/// The multiples of `step` around a number that is none: "48, 64".
std::string nearest_multiples(std::int64_t number, std::int64_t step);

}  // namespace troupe::config
