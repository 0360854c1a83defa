#include "apps/events/number_text.h"

#include <cmath>
#include <cstddef>
#include <cstdio>

#include "core/text.h"

namespace troupe::apps {

std::string brief(double number, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

std::string loss_text(double loss) {
  char text[48];
  const bool has_usual_size = std::abs(loss) >= 0.01 && std::abs(loss) < 1000;
  std::snprintf(text, sizeof text, has_usual_size ? "%.4f" : "%.4g", loss);
  return text;
}

std::string thousands(double number) { return grouped(std::llround(number)); }

std::string count_text(double number) {
  if (number < 1e6) return thousands(number);
  char text[48];
  std::snprintf(text, sizeof text, number < 1e9 ? "%.1f million" : "%.1f billion",
                number / (number < 1e9 ? 1e6 : 1e9));
  return text;
}

std::string duration(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

std::string memory_text(double bytes) {
  constexpr double mib = 1 << 20, gib = 1 << 30;
  char text[48];
  std::snprintf(text, sizeof text, bytes < gib ? "%.1f MiB" : "%.1f GiB",
                bytes / (bytes < gib ? mib : gib));
  return text;
}

}  // namespace troupe::apps
