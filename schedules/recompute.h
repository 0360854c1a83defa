#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe::schedules {

/// The stages that keep only their input and run forward again before the backward pass.
struct Recompute {
  bool everywhere = false;
  std::vector<bool> by_stage = {};  // If empty, `everywhere` decides.

  bool in(int stage) const {
    return by_stage.empty() ? everywhere : by_stage[static_cast<std::size_t>(stage)];
  }
  bool anywhere() const {
    return by_stage.empty() ? everywhere
                            : std::find(by_stage.begin(), by_stage.end(), true) != by_stage.end();
  }
};

}  // namespace troupe::schedules
