#include "kernels/cpu/panels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/panels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t word_bytes = 4;
constexpr std::int64_t panel_bytes = panel_columns * word_bytes;  // Of one unit of depth.

/// Four columns of four words, `stride` bytes apart, become four rows of a panel.
void transpose_four(const std::uint8_t* columns, std::int64_t stride, std::uint8_t* panel) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t k = 0; k < 4; ++k)
    for (std::int64_t j = 0; j < 4; ++j)
      std::memcpy(panel + k * panel_bytes + j * word_bytes, columns + j * stride + k * word_bytes,
                  word_bytes);
#else
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const hn::Repartition<std::uint32_t, decltype(bytes)> words;
  const hn::Repartition<std::uint64_t, decltype(bytes)> pairs;
  const auto column = [&](std::int64_t j) {
    return hn::BitCast(words, hn::LoadU(bytes, columns + j * stride));
  };
  const auto row = [&](std::int64_t k, auto numbers) {
    hn::StoreU(hn::BitCast(bytes, numbers), bytes, panel + k * panel_bytes);
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

/// Columns of words become a panel.
void transpose(const std::uint8_t* from, std::int64_t stride, std::int64_t words,
               std::int64_t columns, std::uint8_t* panel) {
  const std::int64_t whole_words = words / 4 * 4, whole_columns = columns / 4 * 4;
  for (std::int64_t k = 0; k < whole_words; k += 4)
    for (std::int64_t j = 0; j < whole_columns; j += 4)
      transpose_four(from + j * stride + k * word_bytes, stride,
                     panel + k * panel_bytes + j * word_bytes);
  for (std::int64_t k = 0; k < words; ++k)
    for (std::int64_t j = k < whole_words ? whole_columns : 0; j < columns; ++j)
      std::memcpy(panel + k * panel_bytes + j * word_bytes, from + j * stride + k * word_bytes,
                  word_bytes);
}

/// At most a panel's row, where calling memcpy would take as long as the copy itself.
HWY_INLINE void copy_row(const float* from, std::int64_t columns, float* to) {
  const hn::CappedTag<float, panel_columns> floats;
  constexpr std::int64_t lanes = hn::MaxLanes(floats);
  if (columns == panel_columns) {
#pragma GCC unroll 32
    for (std::int64_t j = 0; j < panel_columns; j += lanes)
      hn::StoreU(hn::LoadU(floats, from + j), floats, to + j);
  } else {
    std::copy_n(from, columns, to);
  }
}

void pack_panel(const Matrix<float>& m, std::int64_t depth, std::int64_t columns, float* panel) {
  switch (m.order) {
    case Order::by_column:
      return transpose(reinterpret_cast<const std::uint8_t*>(m.data), m.stride * word_bytes, depth,
                       columns, reinterpret_cast<std::uint8_t*>(panel));
    case Order::by_row:
      for (std::int64_t k = 0; k < depth; ++k)
        copy_row(m.data + k * m.stride, columns, panel + k * panel_columns);
  }
}

void pack_panel(const Matrix<BFloat16>& m, std::int64_t depth, std::int64_t columns,
                Bf16Pair* panel) {
  const std::int64_t pairs = depth / 2;
  switch (m.order) {
    case Order::by_column:
      transpose(reinterpret_cast<const std::uint8_t*>(m.data), m.stride * 2, pairs, columns,
                reinterpret_cast<std::uint8_t*>(panel));
      break;
    case Order::by_row:
      for (std::int64_t k = 0; k < pairs; ++k)
        interleave(m.from(2 * k, 0).data, m.from(2 * k + 1, 0).data, columns,
                   panel + k * panel_columns);
  }
  if (depth % 2 != 0)
    for (std::int64_t j = 0; j < columns; ++j)
      panel[pairs * panel_columns + j] = pair(*m.from(depth - 1, j).data, BFloat16{});
}

template <class Number>
void pack(const Matrix<Number>& m, std::int64_t depth, std::int64_t columns, Unit<Number>* panels,
          std::int64_t panel_stride) {
  for (std::int64_t j = 0; j < columns; j += panel_columns) {
    Unit<Number>* panel = panels + j / panel_columns * panel_stride;
    if (j + panel_columns <= columns) {
      pack_panel(m.from(0, j), depth, panel_columns, panel);
    } else {
      std::fill_n(panel, units<Number>(depth) * panel_columns, Unit<Number>{});
      pack_panel(m.from(0, j), depth, columns - j, panel);
    }
  }
}

void pack_f32(const Matrix<float>& m, std::int64_t depth, std::int64_t columns, float* panels,
              std::int64_t panel_stride) {
  pack(m, depth, columns, panels, panel_stride);
}
void pack_bf16(const Matrix<BFloat16>& m, std::int64_t depth, std::int64_t columns,
               Bf16Pair* panels, std::int64_t panel_stride) {
  pack(m, depth, columns, panels, panel_stride);
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(pack_f32);
HWY_EXPORT(pack_bf16);

void pack_panels(const Matrix<float>& matrix, std::int64_t depth, std::int64_t columns,
                 float* panels, std::int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(pack_f32)(matrix, depth, columns, panels, panel_stride);
}
void pack_panels(const Matrix<BFloat16>& matrix, std::int64_t depth, std::int64_t columns,
                 Bf16Pair* panels, std::int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(pack_bf16)(matrix, depth, columns, panels, panel_stride);
}

}  // namespace troupe::kernels::cpu
#endif
