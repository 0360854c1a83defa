#pragma once

#include <limits>
#include <span>
#include <string>

namespace troupe {

/// The bounds of the numbers in a tensor in fp32. NaN, which stands for no number, is within all.
struct NumberBounds {
  float least = std::numeric_limits<float>::lowest();
  float most = std::numeric_limits<float>::max();

  friend bool operator==(const NumberBounds&, const NumberBounds&) = default;
};

/// Returns what numbers have that is out of bounds, and what was wanted: "inf in targets, wanted
/// finite numbers or NaN", "3 in targets, wanted 0 to 1 or NaN". Empty: they are good. `what` names
/// the numbers.
std::string out_of_bounds(std::span<const float> numbers, const NumberBounds& bounds,
                          const std::string& what);

}  // namespace troupe
