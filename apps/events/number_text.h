#pragma once

#include <string>

namespace troupe::apps {

/// Formats a number with a few digits: "2.412", "0.00263".
std::string brief(double number, int digits = 4);
/// Formats a loss with as many decimals each time: "1.2400".
std::string loss_text(double loss);
/// Formats a whole number: "31,887".
std::string thousands(double number);
/// Formats a count: "108,288", "124.4 million", "7.2 billion".
std::string count_text(double number);
/// Formats a time in seconds: "16 s", "3 min 20 s", "2 h 5 min".
std::string duration(double seconds);
/// Formats an amount of memory: "11.1 MiB", "4.0 GiB".
std::string memory_text(double bytes);

}  // namespace troupe::apps
