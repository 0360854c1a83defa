#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// The middle one; 0 where there is none.
double median(std::vector<double> numbers);

/// Of each step but the first, which warms up: from what `troupe train --output json` printed.
std::vector<double> step_seconds(const std::vector<std::string>& lines);

}  // namespace troupe::bench
