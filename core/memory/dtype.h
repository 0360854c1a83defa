#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// The upper half of a float: the range of fp32 with 8 bits of precision.
struct BFloat16 {
  std::uint16_t bits = 0;

  /// Rounds to nearest, ties to even; a NaN stays a NaN.
  static constexpr BFloat16 from(float value) {
    const auto whole = std::bit_cast<std::uint32_t>(value);
    if ((whole & 0x7fffffffu) > 0x7f800000u)
      return {static_cast<std::uint16_t>((whole >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((whole + 0x7fffu + ((whole >> 16) & 1u)) >> 16)};
  }
  constexpr float to_float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// The type of a tensor's elements.
enum class DType : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8, u16 };

constexpr std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::u8:
      return 1;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
  }
  return 0;
}

constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::u16:
      return "u16";
  }
  return "?";
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr auto value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr auto value = DType::f64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr auto value = DType::bf16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr auto value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr auto value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr auto value = DType::u8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr auto value = DType::u16;
};
template <class T>
constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace troupe
