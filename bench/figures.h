#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// Returns the median, or 0 if there are no numbers.
double median(std::vector<double> numbers);

/// Appends formatted text, at most 511 bytes.
[[gnu::format(printf, 2, 3)]] void print(std::string& to, const char* format, ...);

/// Returns whether a line of `troupe train --output json` tells of a step.
bool is_step(const std::string& line);

/// Returns each step's seconds but the first's, from lines of `troupe train --output json`.
std::vector<double> step_seconds(const std::vector<std::string>& lines);

}  // namespace troupe::bench
