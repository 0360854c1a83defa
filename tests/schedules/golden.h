#pragma once

#include <string>
#include <vector>

namespace troupe::schedules {

/// One schedule of data/golden.txt and its figures for F = I = W = 1 per device, both made by an
/// independent program.
struct Golden {
  std::string text;
  double makespan = 0;
  std::vector<double> peaks;  // In units of a whole device's stash of a micro-batch.
};

std::vector<Golden> golden_schedules();

}  // namespace troupe::schedules
