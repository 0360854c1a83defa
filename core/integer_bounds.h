#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace troupe {

/// The bounds of the numbers in a tensor of integers.
struct IntegerBounds {
  std::int64_t below = 0;  // Each number is in [0, below). 0: no limit.
  bool are_spans = false;  // The numbers are pairs: the first and the end of a span, in this order.

  friend bool operator==(const IntegerBounds&, const IntegerBounds&) = default;
};

/// Returns what numbers have that is out of bounds, and what was wanted: "13 in tokens, wanted 0 to
/// 12". Empty: they are good. `what` names the numbers.
std::string out_of_bounds(std::span<const std::int32_t> numbers, const IntegerBounds& bounds,
                          const std::string& what);

}  // namespace troupe
