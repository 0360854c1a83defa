#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "transport/wire/fields.h"

namespace troupe::actors {

/// The optimizers whose states of one step a process has in its memory.
struct KeptStep {
  std::int64_t step = 0;
  std::vector<int> optimizers;

  static constexpr auto fields() {
    return std::tuple(transport::required("step", &KeptStep::step).at_least(0),
                      transport::required("optimizers", &KeptStep::optimizers).at_least(0));
  }
  friend bool operator==(const KeptStep&, const KeptStep&) = default;
};

}  // namespace troupe::actors
