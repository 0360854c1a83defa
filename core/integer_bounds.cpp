#include "core/integer_bounds.h"

namespace troupe {

std::string out_of_bounds(std::span<const std::int32_t> numbers, const IntegerBounds& bounds,
                          const std::string& what) {
  if (bounds.below > 0)
    for (const auto number : numbers)
      if (number < 0 || number >= bounds.below)
        return std::to_string(number) + " in " + what + ", wanted 0 to " +
               std::to_string(bounds.below - 1);
  if (!bounds.are_spans) return {};
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2)
    if (numbers[i] > numbers[i + 1])
      return "a span from " + std::to_string(numbers[i]) + " to " + std::to_string(numbers[i + 1]) +
             " in " + what + ", wanted an end that is not before the first";
  return {};
}

}  // namespace troupe
