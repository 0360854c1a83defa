#pragma once

#include <cstdint>

namespace troupe::actors {

/// When a run ends before its last step.
struct EarlyStop {
  std::int64_t after = 0;  // Evaluations in a row without an improvement; 0: never.
  double least = 0;        // The smallest decrease of the loss that is an improvement.
};

}  // namespace troupe::actors
