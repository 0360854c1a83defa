#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::schedules {

/// Which stages keep their input alone, and run forward once more before the backward pass.
struct Recompute {
  bool everywhere = false;
  std::vector<bool> by_stage = {};  // Or else; empty: as `everywhere` says.

  bool in(int stage) const {
    return by_stage.empty() ? everywhere : by_stage[static_cast<std::size_t>(stage)];
  }
  bool anywhere() const {
    return by_stage.empty() ? everywhere
                            : std::find(by_stage.begin(), by_stage.end(), true) != by_stage.end();
  }
};

}  // namespace troupe::schedules
