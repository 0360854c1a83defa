#include "kernels/float16.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "catch.h"

namespace troupe {

static_assert(Float16::from(1.0f).bits == 0x3c00);
static_assert(Float16::from(-2.0f).bits == 0xc000);
static_assert(Float16{0x3555}.to_float() == 0x1.554p-2f);

TEST_CASE("Float16 rounds to nearest, ties to even", "[kernels]") {
  CHECK(Float16::from(0x1.001p0f).bits == 0x3c00);     // Nearer to 1.
  CHECK(Float16::from(0x1.002p0f).bits == 0x3c00);     // Halfway: down to the even neighbour.
  CHECK(Float16::from(0x1.006p0f).bits == 0x3c02);     // Halfway: up to the even neighbour.
  CHECK(Float16::from(0x1.002002p0f).bits == 0x3c01);  // Just beyond halfway.
  CHECK(Float16::from(0x1.ffffp0f).bits == 0x4000);    // Carries into the exponent.
  CHECK(Float16::from(-0x1.006p0f).bits == 0xbc02);
}

TEST_CASE("Float16 overflows to infinity from 65520 on", "[kernels]") {
  CHECK(Float16::from(65504.0f).bits == 0x7bff);
  CHECK(Float16::from(65519.996f).bits == 0x7bff);
  CHECK(Float16::from(65520.0f).bits == 0x7c00);
  CHECK(Float16::from(1e30f).bits == 0x7c00);
  CHECK(Float16::from(-std::numeric_limits<float>::infinity()).bits == 0xfc00);
  CHECK(std::isinf(Float16{0x7c00}.to_float()));
}

TEST_CASE("Float16 rounds small numbers to the nearest subnormal, ties to even", "[kernels]") {
  CHECK(Float16::from(0x1p-14f).bits == 0x0400);      // The smallest normal half.
  CHECK(Float16::from(0x1.ff8p-15f).bits == 0x03ff);  // The largest subnormal half.
  CHECK(Float16::from(0x1.ffcp-15f).bits == 0x0400);  // Halfway between them: rounds to even.
  CHECK(Float16::from(0x1p-24f).bits == 0x0001);      // The smallest subnormal half.
  CHECK(Float16::from(0x1p-25f).bits == 0x0000);      // Halfway to zero: rounds to even.
  CHECK(Float16::from(0x1.000002p-25f).bits == 0x0001);
  CHECK(Float16::from(0x1.8p-24f).bits == 0x0002);
  CHECK(Float16::from(-1e-30f).bits == 0x8000);
  CHECK(Float16{0x0001}.to_float() == 0x1p-24f);
  CHECK(Float16{0x83ff}.to_float() == -0x1.ff8p-15f);
}

TEST_CASE("every half keeps its value when it is converted to float and back", "[kernels]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const float number = half.to_float();
    if ((bits & 0x7fffu) > 0x7c00u)
      wrong += !std::isnan(number) || !std::isnan(Float16::from(number).to_float());
    else
      wrong += Float16::from(number).bits != half.bits;
  }
  CHECK(wrong == 0);
}

}  // namespace troupe
