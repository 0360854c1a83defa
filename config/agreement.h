#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "config/run_config.h"
#include "config/toml/diagnostics.h"
#include "config/toml/sources.h"
#include "core/value.h"

namespace troupe::config {

/// A configuration whose keys are valid one by one, and the place for its diagnostics.
struct Examined {
  const RunConfig& config;
  const Value& tree;  // Complete.
  const Sources& sources;
  Diagnostics& found;

  /// Reports an error at the first of these keys that is written in a file or a setting.
  void error(std::initializer_list<std::string_view> keys, std::string message,
             std::string hint = {}) const;
  void warn(std::initializer_list<std::string_view> keys, std::string message,
            std::string hint = {}) const;
};

/// Checks that the keys agree with each other: arithmetic, names, and keys that need other keys.
void check_agreement(const Examined& examined);

/// Checks the keys of asynchronous schedules. check_agreement() calls it.
void check_staleness(const Examined& examined);

/// Returns the multiples of `step` next to a number that is not one: "48, 64".
std::string nearest_multiples(std::int64_t number, std::int64_t step);

}  // namespace troupe::config
