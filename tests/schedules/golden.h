#pragma once

#include <string>
#include <vector>

namespace troupe::schedules {

/// One printed schedule of data/golden.txt, and what plays it for F = I = W = 1 per device: an
/// independent program made both.
struct Golden {
  std::string text;
  double makespan = 0;
  std::vector<double> peaks;  // By device, in units of what a whole device keeps of a micro-batch.
};

std::vector<Golden> golden_schedules();

}  // namespace troupe::schedules
