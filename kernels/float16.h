#pragma once

#include <bit>
#include <cstdint>

#include "core/memory/dtype.h"

namespace troupe {

/// IEEE half precision: 11 bits of precision, from 6e-8 to 65504.
struct Float16 {
  std::uint16_t bits = 0;

  /// Rounds to nearest, ties to even. Too large numbers become infinite; a NaN stays a NaN.
  static constexpr Float16 from(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(whole >> 16 & 0x8000u);
    const std::uint32_t size = whole & 0x7fffffffu;
    constexpr std::uint32_t infinity = 0x7f800000u, too_large = 0x47800000u, normal = 0x38800000u;
    std::uint32_t half = 0;
    if (size > infinity) {
      half = 0x7e00u | (size >> 13 & 0x3ffu);
    } else if (size >= too_large) {
      half = 0x7c00u;
    } else if (size >= normal) {
      // The exponent's bias is 112 less. A carry out of the last digit runs into the exponent, and
      // at the upper end gives infinity.
      half = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    } else {
      // The last digit of a half this small is that of 0.5 in a float, so adding 0.5 rounds there.
      half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
    }
    return {static_cast<std::uint16_t>(sign | half)};
  }

  constexpr float to_float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16, digits = (bits & 0x7fffu) << 13;
    constexpr std::uint32_t no_number = 0x7c00u << 13;
    const std::uint32_t size =
        digits >= no_number ? digits + (224u << 23)
                            : std::bit_cast<std::uint32_t>(std::bit_cast<float>(digits) * 0x1p112f);
    return std::bit_cast<float>(sign | size);
  }
};

template <>
struct DTypeOf<Float16> {
  static constexpr auto value = DType::f16;
};

}  // namespace troupe
