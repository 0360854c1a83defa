#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "catch.h"
#include "core/memory/stream.h"
#include "core/random.h"

namespace troupe::kernels {

/// Returns random numbers between -1 and 1, determined by `seed`.
inline std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> made(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = 2 * uniform(RandomKey{.seed = seed}.words(static_cast<std::uint32_t>(i))[0]) - 1;
  return made;
}

inline Tensor tensor(Stream& stream, const std::vector<float>& numbers, const Shape& shape) {
  Tensor made = Tensor::make(stream.host_memory(), shape);
  REQUIRE(made.count() == static_cast<std::int64_t>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), made.f32());
  return stream.to_here(std::move(made));
}

/// Returns whether numbers agree within the error of sums of `terms` products of numbers below 1.
inline bool close(const std::vector<float>& found, const std::vector<double>& wanted,
                  std::int64_t terms) {
  REQUIRE(found.size() == wanted.size());
  const double tolerance = 1e-6 * std::sqrt(static_cast<double>(terms)) + 1e-6;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(std::abs(found[i] - wanted[i]) <= tolerance * (1 + std::abs(wanted[i])))) {
      UNSCOPED_INFO("at " << i << ": " << found[i] << ", wanted " << wanted[i]);
      return false;
    }
  return true;
}

}  // namespace troupe::kernels
