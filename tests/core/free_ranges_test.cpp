#include "core/memory/free_ranges.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.h"
#include "core/random.h"

using namespace troupe;

namespace {

/// A reference implementation with one flag per byte.
class PlainRanges {
 public:
  explicit PlainRanges(std::size_t bytes) : free_(bytes, true) {}

  std::optional<std::size_t> take(std::size_t length) {
    const auto found = std::search_n(free_.begin(), free_.end(), length, true);
    if (found == free_.end()) return {};
    std::fill_n(found, length, false);
    return found - free_.begin();
  }
  void give(std::size_t begin, std::size_t length) {
    std::fill_n(free_.begin() + static_cast<std::ptrdiff_t>(begin), length, true);
  }
  std::size_t total() const {
    return static_cast<std::size_t>(std::count(free_.begin(), free_.end(), true));
  }

 private:
  std::vector<bool> free_;
};

}  // namespace

TEST_CASE("take returns the lowest range with room and returned ranges merge", "[core]") {
  constexpr std::size_t bytes = 200;
  FreeRanges ranges;
  ranges.give(0, bytes);
  PlainRanges plain(bytes);
  std::vector<FreeRanges::Range> taken;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    const auto [what, size, which, unused] = philox({i, 0, 0, 0}, {1, 2});
    if (what % 2 == 0 && !taken.empty()) {
      const auto at = taken.begin() + static_cast<std::ptrdiff_t>(which % taken.size());
      ranges.give(at->begin, at->length);
      plain.give(at->begin, at->length);
      taken.erase(at);
    } else {
      const std::size_t length = 1 + size % 30;
      const auto begin = ranges.take(length);
      REQUIRE(begin == plain.take(length));
      if (begin) taken.push_back({*begin, length});
    }
    REQUIRE(ranges.total() == plain.total());
  }
  for (const auto& [begin, length] : taken) ranges.give(begin, length);
  CHECK(ranges.last().begin == 0);
  CHECK(ranges.last().length == bytes);
}

TEST_CASE("take fails if nothing is free", "[core]") {
  FreeRanges ranges;
  CHECK_FALSE(ranges.take(1));
  CHECK(ranges.last().length == 0);
}

TEST_CASE("take_highest takes from the top and keeps the bottom in one piece", "[core]") {
  FreeRanges free;
  free.give(0, 100);
  CHECK(free.take_highest(30) == 70);
  CHECK(free.take(20) == 0);
  CHECK(free.take_highest(50) == 20);
  CHECK_FALSE(free.take_highest(1));
  free.give(70, 30);
  free.give(0, 20);
  CHECK(free.take_highest(25) == 75);
  CHECK(free.take_highest(10) == 10);
}
