#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/digest.h"
#include "core/value.h"

namespace troupe::actors {

/// The part of a configuration that decides whether states in memory are those of a run. All
/// results depend on the configuration. But the steps that it leaves out decide only the states
/// after them.
struct StatesOf {
  Digest config;                       // Without the steps that are left out.
  std::vector<std::int64_t> left_out;  // The steps left out, in order, counted from 1.

  StatesOf() = default;
  explicit StatesOf(Value configuration);
  friend bool operator==(const StatesOf&, const StatesOf&) = default;
};

/// Returns the last step after which the states of both are equal; nothing if no state is.
std::optional<std::int64_t> last_equal_step(const StatesOf& one, const StatesOf& other);

}  // namespace troupe::actors
