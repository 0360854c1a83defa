#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// The middle one; 0 where there is none.
double median(std::vector<double> numbers);

/// Adds a line, or a part of one, to a text.
[[gnu::format(printf, 2, 3)]] void print(std::string& to, const char* format, ...);

/// Of each step but the first, which warms up: from what `troupe train --output json` printed.
std::vector<double> step_seconds(const std::vector<std::string>& lines);

}  // namespace troupe::bench
