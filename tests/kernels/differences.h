#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tests/kernels/every_target.h"
#include "tests/kernels/numbers.h"

namespace troupe::kernels {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline Doubles doubles(const Floats& x) { return {x.begin(), x.end()}; }

/// Returns random numbers between -scale and scale.
inline Floats numbers_up_to(float scale, std::int64_t count, std::uint64_t seed) {
  Floats made = numbers(count, seed);
  for (auto& number : made) number *= scale;
  return made;
}

/// Returns the gradient of sum(dy f(x)) by central differences, which a backward pass must match.
inline Doubles numerical_gradient(const std::function<Doubles(const Doubles&)>& f, const Floats& at,
                                  const Floats& dy) {
  constexpr double h = 1e-5;
  Doubles x = doubles(at), gradient;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = at[i] + h;
    const Doubles above = f(x);
    x[i] = at[i] - h;
    const Doubles below = f(x);
    x[i] = at[i];
    double sum = 0;
    for (std::size_t k = 0; k < dy.size(); ++k) sum += dy[k] * (above[k] - below[k]);
    gradient.push_back(sum / (2 * h));
  }
  return gradient;
}

/// Returns whether body(stream) gives equal bits with 1, 2 and 3 threads on every instruction set.
inline bool same_bits(const std::function<Floats(Stream&)>& body) {
  MemoryPool pool;
  Stream one(pool, 1), two(pool, 2), three(pool, 3);
  const Floats expected = body(one);
  bool same = true;
  test::on_every_target([&](const std::string&) {
    for (Stream* stream : {&one, &two, &three}) same = same && body(*stream) == expected;
  });
  return same;
}

}  // namespace troupe::kernels
