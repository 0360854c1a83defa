#include "core/number_bounds.h"

#include <vector>

#include "catch.h"

using namespace troupe;

TEST_CASE("numbers out of bounds are told, and NaN is within all bounds", "[core]") {
  const auto told = [](std::vector<float> numbers, const NumberBounds& bounds) {
    return out_of_bounds(numbers, bounds, "targets");
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  CHECK(told({0, -1e30f, none, 3e38f}, {}).empty());
  CHECK(told({0, infinity}, {}) == "inf in targets, wanted finite numbers or NaN");
  CHECK(told({none, -infinity}, {}) == "-inf in targets, wanted finite numbers or NaN");
  CHECK(told({0, none, 1, 0.25f}, {.least = 0, .most = 1}).empty());
  CHECK(told({0, 1.5f}, {.least = 0, .most = 1}) == "1.5 in targets, wanted 0 to 1 or NaN");
  CHECK(told({-0.5f}, {.least = 0, .most = 1}) == "-0.5 in targets, wanted 0 to 1 or NaN");
}
