#include "core/number_bounds.h"

#include <cstdio>

namespace troupe {
namespace {

std::string short_text(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(number));
  return text;
}

}  // namespace

std::string out_of_bounds(std::span<const float> numbers, const NumberBounds& bounds,
                          const std::string& what) {
  for (const float number : numbers)
    if (number < bounds.least || number > bounds.most)
      return short_text(number) + " in " + what + ", wanted " +
             (bounds == NumberBounds()
                  ? "finite numbers"
                  : short_text(bounds.least) + " to " + short_text(bounds.most)) +
             " or NaN";
  return {};
}

}  // namespace troupe
