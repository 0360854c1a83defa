#include "core/random.h"

#include <cmath>

#include "catch.h"

using namespace troupe;
using Words = std::array<std::uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32-10.
TEST_CASE("philox returns the published test vectors", "[core]") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every part of a key changes the random numbers", "[core]") {
  const RandomKey key{1, 2, 3, 4};
  const auto words = key.words(5);
  CHECK(words == key.words(5));
  CHECK(words != key.words(6));
  CHECK(words != RandomKey{2, 2, 3, 4}.words(5));
  CHECK(words != RandomKey{1ull << 40 | 1, 2, 3, 4}.words(5));
  CHECK(words != RandomKey{1, 3, 3, 4}.words(5));
  CHECK(words != RandomKey{1, 2, 4, 4}.words(5));
  CHECK(words != RandomKey{1, 2, 3, 5}.words(5));
}

TEST_CASE("normal numbers follow the formula of Box and Muller", "[core]") {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const auto words = RandomKey{7}.words(i);
    const auto pair = normal_pair(words[0], words[1]);
    const double radius = std::sqrt(-2 * std::log((words[0] + 1.0) * 0x1p-32));
    const double angle = 2 * std::acos(-1.0) * words[1] * 0x1p-32;
    CHECK(pair[0] == Approx(radius * std::cos(angle)).margin(1e-6));
    CHECK(pair[1] == Approx(radius * std::sin(angle)).margin(1e-6));
  }
}

TEST_CASE("normal numbers have mean 0 and variance 1", "[core]") {
  double sum = 0, squares = 0;
  constexpr int count = 100'000;
  for (std::uint32_t i = 0; i < count / 2; ++i) {
    const auto words = RandomKey{3}.words(i);
    for (const float x : normal_pair(words[0], words[1])) {
      sum += x;
      squares += x * x;
    }
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == Approx(1).margin(0.02));
}
