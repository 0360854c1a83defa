#include "core/integer_bounds.h"

#include <vector>

#include "catch.h"

using namespace troupe;

TEST_CASE("integers out of bounds are told", "[core]") {
  const auto told = [](std::vector<std::int32_t> numbers, const IntegerBounds& bounds) {
    return out_of_bounds(numbers, bounds, "marks");
  };
  CHECK(told({0, 12, 5}, {.below = 13}).empty());
  CHECK(told({0, 13, 5}, {.below = 13}) == "13 in marks, wanted 0 to 12");
  CHECK(told({-1}, {.below = 13}) == "-1 in marks, wanted 0 to 12");
  CHECK(told({-1, INT32_MAX}, {}).empty());
  CHECK(told({0, 4, 3, 3, 4, 4}, {.below = 5, .are_spans = true}).empty());
  CHECK(told({0, 5}, {.below = 5, .are_spans = true}) == "5 in marks, wanted 0 to 4");
  CHECK(told({0, 4, 3, 2}, {.below = 5, .are_spans = true}) ==
        "a span from 3 to 2 in marks, wanted an end that is not before the first");
}
