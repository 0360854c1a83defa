#include "core/random.h"

#include <bit>
#include <cmath>

namespace troupe {
namespace {

/// Computes the natural logarithm of x in (0, 1] by its series in (m - 1) / (m + 1).
double logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * s * sum + exponent * 0.6931471805599453;
}

/// Computes the cosine and sine of a fraction in [0, 1) of a quarter turn, by their series.
std::array<double, 2> turn(double fraction) {
  const double x = fraction * 1.5707963267948966;
  const double square = x * x;
  double cosine = 0, sine = 0;
  for (int k = 10; k >= 1; --k) {
    cosine = (1 + cosine) * -square / ((2.0 * k - 1) * (2.0 * k));
    sine = (1 + sine) * -square / ((2.0 * k) * (2.0 * k + 1));
  }
  return {1 + cosine, x * (1 + sine)};
}

}  // namespace

std::array<float, 2> normal_pair(std::uint32_t a, std::uint32_t b) {
  const double u = (a + 1.0) * 0x1p-32;  // In (0, 1], so that the logarithm is finite.
  const double radius = std::sqrt(-2 * logarithm(u));
  const auto [c, s] = turn((b & 0x3fffffffu) * 0x1p-30);
  switch (b >> 30) {
    case 0:
      return {static_cast<float>(radius * c), static_cast<float>(radius * s)};
    case 1:
      return {static_cast<float>(radius * -s), static_cast<float>(radius * c)};
    case 2:
      return {static_cast<float>(radius * -c), static_cast<float>(radius * -s)};
    default:
      return {static_cast<float>(radius * s), static_cast<float>(radius * -c)};
  }
}

}  // namespace troupe
