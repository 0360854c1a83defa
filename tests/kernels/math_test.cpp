#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "catch.h"
#include "core/digest.h"
#include "kernels/cpu/parts/targets.h"
#include "tests/kernels/every_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/math_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

// Requires `count` to be a multiple of 16.
template <class Function>
void map(const float* x, float* y, std::size_t count, Function function) {
  const hn::CappedTag<float, 16> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    hn::StoreU(function(d, hn::LoadU(d, x + i)), d, y + i);
}

void map_exp(const float* x, float* y, std::size_t count) {
  map(x, y, count, [](auto d, auto v) HWY_ATTR { return exp(d, v); });
}
void map_exp_nonpositive(const float* x, float* y, std::size_t count) {
  map(x, y, count, [](auto d, auto v) HWY_ATTR { return exp_nonpositive(d, v); });
}
void map_tanh(const float* x, float* y, std::size_t count) {
  map(x, y, count, [](auto d, auto v) HWY_ATTR { return tanh(d, v); });
}
void map_erf(const float* x, float* y, std::size_t count) {
  map(x, y, count, [](auto d, auto v) HWY_ATTR { return erf(d, v); });
}
void map_log(const float* x, float* y, std::size_t count) {
  map(x, y, count, [](auto d, auto v) HWY_ATTR { return log(d, v); });
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::kernels::cpu {
namespace {

HWY_EXPORT(map_exp);
HWY_EXPORT(map_exp_nonpositive);
HWY_EXPORT(map_tanh);
HWY_EXPORT(map_erf);
HWY_EXPORT(map_log);

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

using Map = void (*)(const float*, float*, std::size_t);
using Reference = double (*)(double);

struct Function {
  const char* name;
  Map (*map)();  // On the instruction set that is selected now.
  Reference reference;
  double allowed;  // In units in the last place.
};

const Function exp{"exp", [] { return Map(HWY_DYNAMIC_DISPATCH(map_exp)); }, std::exp, 2};
const Function tanh{"tanh", [] { return Map(HWY_DYNAMIC_DISPATCH(map_tanh)); }, std::tanh, 3};
const Function erf{"erf", [] { return Map(HWY_DYNAMIC_DISPATCH(map_erf)); }, std::erf, 3};
const Function log{"log", [] { return Map(HWY_DYNAMIC_DISPATCH(map_log)); }, std::log, 2};
const Function functions[] = {exp, tanh, erf, log};

/// Returns every `stride`-th float of all bit patterns except NaNs.
std::vector<float> floats(std::uint64_t stride) {
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += stride)
    if (const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)); !std::isnan(x))
      all.push_back(x);
  while (all.size() % 16 != 0) all.push_back(1);
  return all;
}

std::vector<float> values_of(const Function& function, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  function.map()(x.data(), y.data(), x.size());
  return y;
}

float value_at(const Function& function, float x) {
  return values_of(function, std::vector<float>(16, x))[0];
}

/// Returns the distance of a result from the true value, in spacings of floats there.
double error_in_units(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (std::isnan(want) || std::isinf(nearest) || std::isnan(got) || std::isinf(got)) {
    // From 2^128 (1 - 2^-25) on, rounding gives infinity; just below, both results are accepted.
    const bool equal = (std::isnan(want) && std::isnan(got)) || got == nearest;
    const bool close = std::isinf(got) && std::abs(want) > 0x1.fffffcp127 && got * want > 0;
    return equal || close ? 0 : infinity;
  }
  const double spacing =
      std::max(std::ldexp(1.0, std::ilogb(nearest == 0 ? 1e-45f : nearest) - 23), 0x1p-149);
  return std::abs(got - want) / spacing;
}

TEST_CASE("exp, tanh, erf and log are within their stated error", "[kernels]") {
  const auto x = floats(2503);
  for (const auto& function : functions) {
    const auto y = values_of(function, x);
    double worst = 0;
    float where = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const auto error = error_in_units(y[i], function.reference(x[i])); error > worst) {
        worst = error;
        where = x[i];
      }
    INFO(function.name << " is " << worst << " units away at " << where);
    CHECK(worst <= function.allowed);
  }
}

TEST_CASE("the fast exp is within 2 units in the last place and 0 below -86", "[kernels]") {
  std::vector<float> x, y;
  for (int i = 0; i < 16 * 60'000; ++i) x.push_back(-1e-4f * static_cast<float>(i));
  x[1] = -0.0f;
  x[2] = -1e-45f;
  x[3] = -infinity;
  x[4] = nan;
  test::on_every_target([&](const std::string& target) {
    INFO(target);
    y.assign(x.size(), -1);
    HWY_DYNAMIC_DISPATCH(map_exp_nonpositive)(x.data(), y.data(), x.size());
    CHECK(y[0] == 1);
    CHECK(y[1] == 1);
    CHECK(y[2] == 1);
    CHECK(y[3] == 0);
    CHECK(std::isnan(y[4]));
    double worst = 0;
    for (std::size_t i = 5; i < x.size(); ++i)
      worst = std::max(worst, x[i] < -86 ? (y[i] == 0 ? 0 : infinity)
                                         : error_in_units(y[i], std::exp(double{x[i]})));
    CHECK(worst <= 2);
  });
}

TEST_CASE("exp, tanh, erf and log have the same bits on every instruction set", "[kernels]") {
  const auto x = floats(9973);
  for (const auto& function : functions) {
    INFO(function.name);
    CHECK(test::same_on_every_target([&] {
      auto y = values_of(function, x);
      for (auto& value : y)
        if (std::isnan(value)) value = 12345;  // The payload of a NaN differs between processors.
      return digest_of(std::as_bytes(std::span(y)));
    }));
  }
}

TEST_CASE("exp, tanh, erf and log are exact at special values", "[kernels]") {
  test::on_every_target([&](const std::string& target) {
    INFO(target);
    CHECK(value_at(exp, 0) == 1);
    CHECK(value_at(exp, -infinity) == 0);
    CHECK(value_at(exp, infinity) == infinity);
    CHECK(value_at(exp, 1e30f) == infinity);
    CHECK(value_at(exp, -1e30f) == 0);
    CHECK(value_at(exp, 1e-45f) == 1);
    for (const auto& odd : {tanh, erf}) {
      CHECK(std::bit_cast<std::uint32_t>(value_at(odd, -0.0f)) == 0x80000000u);
      CHECK(value_at(odd, infinity) == 1);
      CHECK(value_at(odd, -infinity) == -1);
      CHECK(value_at(odd, -1e30f) == -1);
    }
    CHECK(value_at(tanh, 1e-45f) == 1e-45f);
    CHECK(value_at(log, 1) == 0);
    CHECK(value_at(log, 0) == -infinity);
    CHECK(value_at(log, -0.0f) == -infinity);
    CHECK(value_at(log, infinity) == infinity);
    CHECK(std::isnan(value_at(log, -1)));
    CHECK(std::isnan(value_at(log, -infinity)));
    for (const auto& function : functions) CHECK(std::isnan(value_at(function, nan)));
  });
}

}  // namespace
}  // namespace troupe::kernels::cpu

#endif
