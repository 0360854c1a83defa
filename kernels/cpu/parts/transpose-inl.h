// Included once per Highway target: transposition of matrices of four-byte words.
#if defined(TROUPE_KERNELS_CPU_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_CPU_TRANSPOSE_INL_H
#undef TROUPE_KERNELS_CPU_TRANSPOSE_INL_H
#else
#define TROUPE_KERNELS_CPU_TRANSPOSE_INL_H
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {

/// Transposes four columns of four words into rows. Strides are in bytes.
HWY_INLINE void transpose_four(const std::uint8_t* columns, std::int64_t stride, std::uint8_t* rows,
                               std::int64_t row_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t k = 0; k < 4; ++k)
    for (std::int64_t j = 0; j < 4; ++j)
      std::memcpy(rows + k * row_stride + j * 4, columns + j * stride + k * 4, 4);
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const hn::Repartition<std::uint32_t, decltype(bytes)> words;
  const hn::Repartition<std::uint64_t, decltype(bytes)> pairs;
  const auto column = [&](std::int64_t j) {
    return hn::BitCast(words, hn::LoadU(bytes, columns + j * stride));
  };
  const auto row = [&](std::int64_t k, auto numbers) {
    hn::StoreU(hn::BitCast(bytes, numbers), bytes, rows + k * row_stride);
  };
  const auto a = column(0), b = column(1), c = column(2), d = column(3);
  const auto lower_ab = hn::BitCast(pairs, hn::InterleaveLower(words, a, b));
  const auto lower_cd = hn::BitCast(pairs, hn::InterleaveLower(words, c, d));
  const auto upper_ab = hn::BitCast(pairs, hn::InterleaveUpper(words, a, b));
  const auto upper_cd = hn::BitCast(pairs, hn::InterleaveUpper(words, c, d));
  row(0, hn::InterleaveLower(pairs, lower_ab, lower_cd));
  row(1, hn::InterleaveUpper(pairs, lower_ab, lower_cd));
  row(2, hn::InterleaveLower(pairs, upper_ab, upper_cd));
  row(3, hn::InterleaveUpper(pairs, upper_ab, upper_cd));
#endif
}

/// Transposes columns of four-byte words, `stride` bytes apart, into rows that are `row_stride`
/// bytes apart.
inline void transpose(const void* from, std::int64_t stride, std::int64_t words,
                      std::int64_t columns, void* to, std::int64_t row_stride) {
  const auto* in = static_cast<const std::uint8_t*>(from);
  auto* out = static_cast<std::uint8_t*>(to);
  const std::int64_t whole_words = words / 4 * 4, whole_columns = columns / 4 * 4;
  for (std::int64_t k = 0; k < whole_words; k += 4)
    for (std::int64_t j = 0; j < whole_columns; j += 4)
      transpose_four(in + j * stride + k * 4, stride, out + k * row_stride + j * 4, row_stride);
  for (std::int64_t k = 0; k < words; ++k)
    for (std::int64_t j = k < whole_words ? whole_columns : 0; j < columns; ++j)
      std::memcpy(out + k * row_stride + j * 4, in + j * stride + k * 4, 4);
}

}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
